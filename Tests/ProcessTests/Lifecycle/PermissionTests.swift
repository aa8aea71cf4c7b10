import Foundation
import Testing

extension ProcessTests {
    /// Who may read the files that the programs write.
    struct PermissionTests {
        /// Starts a program with a umask that takes no permission away.
        private static let open = ["/bin/sh", "-c", "umask 0; exec \"$@\"", "sh"]

        @Test func `only the owner may read the written files, whatever the umask is`() async throws
        {
            try await withSite { site in
                let sequencer = try site.start(
                    ["sequencer", "--json", "--bind", "tcp://127.0.0.1:0", "--data"]
                        + [site.path("made/log")], behind: Self.open)
                let ready = try await site.event("ready", of: sequencer)
                let address = try #require(ready[key: "address"]?.string)
                let worker = try site.start(
                    ["worker", "--json", "--connect", address, "--name", "alpha"]
                        + ["--store", "counter", "--journal", site.path("journal")],
                    behind: Self.open)
                _ = try await site.event("ready", of: worker)
                _ = try await site.dispatch("increment", to: "counter", at: address)
                try await run(site, "backup", site.path("copy"), "--data", site.path("made/log"))
                try await run(site, "restore", site.path("copy"), "--data", site.path("back"))
                try await run(site, "keygen", site.path("ops"))
                // While the log is open, all of its files are there.
                let files = try permissions(site)
                let entries = "entries-0000000000000000001.conflux"
                for name in ["log.sqlite", "log.sqlite-wal", "log.sqlite-shm", entries, "lock"] {
                    #expect(files["made/log/\(name)"] == 0o600, "\(name)")
                }
                for name in [
                    "copy/log.sqlite", "copy/\(entries)", "back/log.sqlite", "back/\(entries)",
                    "journal", "ops.secret",
                ] {
                    #expect(files[name] == 0o600, "\(name)")
                }
                for folder in ["made", "made/log", "copy", "back"] {
                    #expect(files[folder] == 0o700, "\(folder)")
                }
                let readable = files.filter { $0.value & 0o077 != 0 }
                #expect(Set(readable.keys) == ["ops.public"], "\(readable)")
            }
        }

        @Test func `a folder keeps its permissions`() async throws {
            try await withSite { site in
                let folder = site.path("shared")
                try FileManager.default.createDirectory(
                    atPath: folder, withIntermediateDirectories: false)
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o750], ofItemAtPath: folder)
                let sequencer = try await site.sequencer(data: "shared")
                let files = try permissions(site)
                #expect(files["shared"] == 0o750)
                #expect(files["shared/log.sqlite-wal"] == 0o600)
                sequencer.child.signal(SIGTERM)
                #expect(try await sequencer.child.end() == .exited(0))
                // A file keeps its permissions, too.
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o640], ofItemAtPath: site.database("shared").path)
                _ = try await site.sequencer(data: "shared")
                #expect(try permissions(site)["shared/log.sqlite"] == 0o640)
            }
        }

        private func run(_ site: Site, _ arguments: String...) async throws {
            let outcome = try await Tool.outcome(of: site.start(arguments, behind: Self.open))
            #expect(outcome.end == .exited(0), "\(outcome.title): \(outcome.message)")
        }

        /// The permissions of all files in the site's folder.
        private func permissions(_ site: Site) throws -> [String: Int] {
            var found: [String: Int] = [:]
            for name in try FileManager.default.subpathsOfDirectory(atPath: site.folder) {
                let attributes = try FileManager.default.attributesOfItem(atPath: site.path(name))
                found[name] = try #require(attributes[.posixPermissions] as? Int)
            }
            return found
        }
    }
}
