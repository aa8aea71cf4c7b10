import Conflux
import Foundation
import Testing

/// When `script/release` refuses to run. The build itself is not tested here, since it takes minutes.
@Suite(.enabled(if: Deployment.has("git"), "Git is not installed"))
struct ReleaseTests {
    private static let version = "9.8.7"

    /// Runs the script in a small repository that the test makes.
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

    @Test func `uncommitted changes are not released`() async throws {
        try await withSite { site in
            let outcome = try await release(site, changes: "## 9.8.7\n", isCommitted: false)
            #expect(outcome.end == .exited(1))
            #expect(outcome.message.contains("not committed") && outcome.message.contains("new"))
        }
    }

    @Test func `the tarball has the program, its manual page and its completions`() async throws {
        try await withSite { site in
            // A debug build is large, so the tarball gets a script that calls it. A child process writes the script:
            // a program that this process has open for writing could not be run.
            let program = site.path("conflux")
            let written = try await Deployment.run(
                "sh", "-c", #"printf '#!/bin/sh\nexec "%s" "$@"\n' "$1" >"$2" && chmod 755 "$2""#,
                "sh", Tool.path, program)
            #expect(written.end == .exited(0), "\(written.message)")
            let made = try await Deployment.run(
                Deployment.path("deploy/tarball"), program, site.path("out"))
            #expect(made.end == .exited(0), "\(made.message)")
            let tarball = try #require(made.output.last)
            let unpacked = try await Deployment.run("tar", "-xzf", tarball, "-C", site.folder)
            #expect(unpacked.end == .exited(0), "\(unpacked.message)")
            let name = try #require(tarball.split(separator: "/").last).dropLast(".tar.gz".count)
            #expect(name.hasPrefix("conflux-\(try Deployment.version())-linux-"))
            let share = site.path("\(name)/share")
            let page = try await Deployment.run("gzip", "-dc", "\(share)/man/man1/conflux.1.gz")
            #expect(page.output.first?.hasPrefix(".TH \"CONFLUX\" 1") == true)
            for file in [
                "bash-completion/completions/conflux", "zsh/vendor-completions/_conflux",
                "fish/vendor_completions.d/conflux.fish",
            ] {
                let text = try String(contentsOfFile: "\(share)/\(file)", encoding: .utf8)
                #expect(text.contains("conflux"), "\(file)")
            }
            let links = try InstalledLinks(in: site.path(String(name)))
            #expect(links.count > 200 && links.broken.isEmpty, "\(links.broken)")
            for file in ["conflux", "README.md", "docs/README.md", "deploy/debian/build-deb"] {
                #expect(Deployment.isFile(site.path("\(name)/\(file)")), "\(file)")
            }
        }
    }

    @Test(.enabled(if: Deployment.has("dpkg-query", "readelf", "python3"), "a tool is missing"))
    func `the bill of materials names the libraries, with the packages that they are from`()
        async throws
    {
        let made = try await Deployment.run(
            Deployment.path("deploy/bill-of-materials"), Tool.path,
            variables: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? ""])
        #expect(made.end == .exited(0), "\(made.message)")
        let bill = try object(made.output.joined())
        #expect(bill[key: "bomFormat"] == "CycloneDX" && bill[key: "specVersion"] == "1.5")
        let program = bill[key: "metadata"]?[key: "component"]
        #expect(program?[key: "version"]?.string == (try Deployment.version()))
        let parts = try #require(bill[key: "components"]?.array)
        let names = parts.compactMap { $0[key: "name"]?.string }
        #expect(names.contains("swift"), "\(names)")
        for library in ["libsodium23", "libsqlite3-0", "libzmq5", "libcurl4"] {
            let part = parts.first { $0[key: "name"]?.string == library }
            let address = part?[key: "purl"]?.string ?? ""
            #expect(address.hasPrefix("pkg:deb/") && address.contains("/\(library)@"), "\(names)")
        }
        // Nothing is there twice, and nothing comes from a package of Swift.
        #expect(Set(names).count == names.count)
        #expect(parts.dropFirst().allSatisfy { $0[key: "purl"] != nil }, "\(names)")
        let depended = bill[key: "dependencies"]?.array?.first?[key: "dependsOn"]?.array?.count
        #expect(depended == parts.count)
    }

    @Test func `the changelog has a section for the version`() throws {
        let section = "## \(try Deployment.version())"
        let headings = try Deployment.text("CHANGELOG.md").split(separator: "\n")
        #expect(headings.contains { $0 == section || $0.hasPrefix("\(section) ") })
    }
}
