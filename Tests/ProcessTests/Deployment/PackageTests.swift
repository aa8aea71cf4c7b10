import Foundation
import Testing

/// The Debian package, and what it installs.
@Suite(
    .enabled(
        if: Deployment.has("dpkg", "dpkg-deb", "dpkg-shlibdeps") && getuid() == 0,
        "dpkg-dev is not installed, or the tests do not run as root"))
struct PackageTests {
    /// Makes an empty system: the database of dpkg, and no files.
    private func makeRoot(_ site: Site) throws -> String {
        let root = site.path("root")
        for folder in ["info", "updates", "triggers"] {
            try FileManager.default.createDirectory(
                atPath: "\(root)/var/lib/dpkg/\(folder)", withIntermediateDirectories: true)
        }
        _ = try site.write("", to: "root/var/lib/dpkg/status")
        return root
    }

    /// Runs dpkg. The package's dependencies are not in the root, but on this machine.
    private func dpkg(_ root: String, _ action: String, _ package: String) async throws {
        let outcome = try await Deployment.run(
            "dpkg", "--root=\(root)", "--log=/dev/null", "--force-depends", action, package,
            variables: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"])
        #expect(outcome.end == .exited(0), "\(outcome.message)")
    }

    /// Adds the files that systemd expects beside the units.
    private func addSystem(to root: String) throws {
        let folder = "usr/lib/systemd/system"
        for target in [
            "basic", "multi-user", "network", "network-online", "shutdown", "sysinit", "timers",
        ] {
            try FileManager.default.copyItem(
                atPath: "/\(folder)/\(target).target", toPath: "\(root)/\(folder)/\(target).target")
        }
        try FileManager.default.createDirectory(
            atPath: "\(root)/bin", withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: "/bin/kill", toPath: "\(root)/bin/kill")
    }

    @Test func `the package installs a program that runs, and units that are valid`() async throws {
        try await withSite { site in
            // A debug build is large, and the package is not kept, so it is not compressed.
            let built = try await Deployment.run(
                Deployment.path("deploy/debian/build-deb"), Tool.path, site.folder,
                variables: ["DPKG_DEB_COMPRESSOR_LEVEL": "0"])
            #expect(built.end == .exited(0), "\(built.message)")
            let package = try #require(built.output.last)
            let version = try Deployment.version()
            #expect(package.contains("/conflux_\(version)_"))
            let depends = try await Deployment.run("dpkg-deb", "--field", package, "Depends")
            for library in ["libc6", "libsodium23", "libsqlite3-0", "libzmq5"] {
                #expect(depends.output.joined().contains(library), "\(depends.output)")
            }

            try await lint(package)
            let root = try makeRoot(site)
            try await dpkg(root, "--install", package)
            let program = "\(root)/usr/bin/conflux"
            let shown = try await Deployment.run(program, "worker", "--version")
            #expect(shown.output == ["conflux \(version)"])
            for completions in [
                "bash-completion/completions/conflux", "zsh/vendor-completions/_conflux",
                "fish/vendor_completions.d/conflux.fish",
            ] { #expect(Deployment.isFile("\(root)/usr/share/\(completions)")) }
            let page = try await Deployment.run(
                "gzip", "-dc", "\(root)/usr/share/man/man1/conflux.1.gz")
            #expect(page.output.first?.hasPrefix(".TH \"CONFLUX\" 1") == true)
            for name in ["conflux-dispatch", "conflux-log-skip"] {
                #expect(Deployment.isFile("\(root)/usr/share/man/man1/\(name).1.gz"), "\(name)")
            }
            #expect(Deployment.isFile("\(root)/etc/conflux/sequencer.env"))
            for file in ["alerts.yaml", "board.json"] {
                #expect(Deployment.isFile("\(root)/usr/share/conflux/\(file)"), "\(file)")
            }
            try checkLinks(root)
            try await verifyUnits(root)

            // No file of the package is left.
            try await dpkg(root, "--purge", "conflux")
            #expect(!Deployment.isFile(program) && !Deployment.isFile("\(root)/etc/conflux"))
        }
    }

    /// Runs lintian. A debug build finds Swift's libraries by a path in it, and has its symbols. A release has neither.
    private func lint(_ package: String) async throws {
        guard Deployment.has("lintian") else { return }
        let outcome = try await Deployment.run(
            "lintian", "--allow-root", "--fail-on", "error,warning",
            "--suppress-tags", "custom-library-search-path,unstripped-binary-or-object", package)
        #expect(outcome.end == .exited(0), "\(outcome.output.joined(separator: "\n"))")
    }

    /// Every link in a document, every runbook of an alert, and every document of a unit leads to a file of the package.
    private func checkLinks(_ root: String) throws {
        let documents = "\(root)/usr/share/doc/conflux"
        let links = try InstalledLinks(in: documents)
        #expect(links.count > 200, "\(links.count)")
        #expect(links.broken.isEmpty, "\(links.broken)")
        let files =
            ["usr/share/conflux/alerts.yaml"]
            + ["sequencer.service", "worker@.service", "backup.service", "backup.timer"].map {
                "usr/lib/systemd/system/conflux-\($0)"
            }
        for file in files {
            let text = try String(contentsOfFile: "\(root)/\(file)", encoding: .utf8)
            let found = text.matches(of: /(?:runbook_url: |Documentation=)file:\/\/(\/[^#\s]+)/)
            #expect(!found.isEmpty, "\(file)")
            for match in found { #expect(Deployment.isFile(root + match.1), "\(file): \(match.1)") }
        }
    }

    private func verifyUnits(_ root: String) async throws {
        guard Deployment.has("systemd-analyze") else { return }
        try addSystem(to: root)
        for unit in ["conflux-sequencer", "conflux-worker@"] {
            let folder = "\(root)/etc/systemd/system/\(unit).service.d"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true)
            try FileManager.default.copyItem(
                atPath: "\(root)/usr/share/conflux/http.conf", toPath: "\(folder)/http.conf")
        }
        let verified = try await Deployment.run(
            "systemd-analyze", "verify", "--root=\(root)", "--recursive-errors=no",
            "conflux-sequencer.service", "conflux-worker@alpha.service", "conflux-backup.service",
            "conflux-backup.timer")
        #expect(verified.end == .exited(0) && verified.errors.isEmpty, "\(verified.message)")
    }
}
