import Foundation
import Testing

/// When `script/release` refuses. That it builds is seen by running it: a release build takes minutes.
@Suite(.enabled(if: Deployment.has("git"), "Git is not installed"))
struct ReleaseTests {
    private static let version = "9.8.7"

    /// Runs the script in a small repository of its own.
    private func release(_ site: Site, changes: String, isCommitted: Bool) async throws
        -> Tool.Outcome
    {
        let folders = ["tree/script", "tree/Sources/ConfluxVocabulary"]
        for folder in folders {
            try FileManager.default.createDirectory(
                atPath: site.path(folder), withIntermediateDirectories: true)
        }
        try FileManager.default.copyItem(
            atPath: Deployment.path("script/release"), toPath: site.path("tree/script/release"))
        _ = try site.write(
            "    package static let version = \"\(Self.version)\"\n",
            to: "tree/Sources/ConfluxVocabulary/ConfluxRelease.swift")
        _ = try site.write(changes, to: "tree/CHANGELOG.md")
        let tree = site.path("tree")
        for arguments in [
            ["init", "--quiet"], ["add", "--all"],
            ["-c", "user.name=A", "-c", "user.email=a@b", "commit", "--quiet", "--message", "All"],
        ] {
            let git = try Tool.start(
                ["-C", tree] + arguments, program: try #require(Deployment.program("git")))
            #expect(try await git.end() == .exited(0), "\(git.report)")
        }
        if !isCommitted { _ = try site.write("", to: "tree/new") }
        return try await Deployment.run("\(tree)/script/release", site.path("out"))
    }

    @Test(arguments: ["## Unreleased\n", "## 9.8.70\n", "## 9.8\n", "### 9.8.7\n"])
    func `a version without a section in the changelog is not released`(changes: String)
        async throws
    {
        try await withSite { site in
            let outcome = try await release(site, changes: changes, isCommitted: true)
            #expect(outcome.end == .exited(1))
            #expect(outcome.message.contains("CHANGELOG.md has no section '## 9.8.7'"))
        }
    }

    @Test func `what is not committed is not released`() async throws {
        try await withSite { site in
            let outcome = try await release(site, changes: "## 9.8.7\n", isCommitted: false)
            #expect(outcome.end == .exited(1))
            #expect(outcome.message.contains("not committed") && outcome.message.contains("new"))
        }
    }

    @Test func `the changelog has a section for the version`() throws {
        let section = "## \(try Deployment.version())"
        let headings = try Deployment.text("CHANGELOG.md").split(separator: "\n")
        #expect(headings.contains { $0 == section || $0.hasPrefix("\(section) ") })
    }
}
