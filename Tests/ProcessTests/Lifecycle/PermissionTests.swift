import Foundation
import Testing

extension ProcessTests {
    /// Who may read the files that the programs write, and what the programs say if they may not write them.
    struct PermissionTests {
        /// Starts a program as a user whom the system can refuse something.
        private static let ordinary =
            geteuid() == 0
            ? ["/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] : []

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

        @Test(.enabled(if: ordinary.allSatisfy { !$0.hasPrefix("/") || access($0, X_OK) == 0 }))
        func `a missing right is named with its file, and no log is called lost`() async throws {
            try await withSite { site in
                let sequencer = try await start(site)
                _ = try await site.worker("alpha", of: sequencer)
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                sequencer.child.signal(SIGTERM)
                #expect(try await sequencer.child.end() == .exited(0))
                let log = site.path("log")
                let entries = "\(log)/entries-0000000000000000001.conflux"
                for (path, mode, refuser) in [
                    ("\(log)/log.sqlite-wal", 0o400, "sequencer"),
                    ("\(log)/log.sqlite-wal", 0, "log"),
                    ("\(log)/log.sqlite-shm", 0o400, "sequencer"),
                    ("\(log)/log.sqlite", 0o400, "sequencer"), ("\(log)/log.sqlite", 0, "log"),
                    ("\(log)/lock", 0o400, "sequencer"), (entries, 0o400, "sequencer"),
                    (entries, 0, "log"), (log, 0o600, "sequencer"), (log, 0o600, "log"),
                ] {
                    let former = try permissions(of: path)
                    #expect(chmod(path, mode_t(mode)) == 0)
                    let words =
                        refuser == "log"
                        ? ["log", "--verify", log]
                        : ["sequencer", "--bind", "tcp://127.0.0.1:0", "--data", log]
                    let outcome = try await Tool.outcome(
                        of: try site.start(words + ["--json"], behind: Self.ordinary))
                    #expect(outcome.end != .exited(0), "\(outcome)")
                    let message = outcome.message
                    #expect(message.contains(path), "\(path): \(message)")
                    #expect(message.contains("Permission denied"), "\(path): \(message)")
                    #expect(message.contains("This user may not do that."), "\(path): \(message)")
                    #expect(!message.contains("backup"), "\(path): \(message)")
                    #expect(chmod(path, mode_t(former)) == 0)
                }
                _ = try await start(site)
            }
        }

        @Test(
            .enabled(if: ordinary.allSatisfy { !$0.hasPrefix("/") || access($0, X_OK) == 0 }),
            arguments: [0, 0o500])
        func `a sequencer continues when its right to the folder is back`(mode: Int) async throws {
            try await withSite { site in
                let sequencer = try await start(site)
                let log = site.path("log")
                _ = try await site.worker("alpha", of: sequencer)
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                #expect(chmod(log, mode_t(mode)) == 0)
                let waiting = try site.start([
                    "dispatch", "counter", "increment", "--connect", sequencer.address,
                    "--timeout", "60s",
                ])
                if mode == 0 {
                    let failed = try await site.event("logFailed", of: sequencer.child)
                    let message = failed[key: "message"]?.string ?? ""
                    #expect(message.contains("Permission denied"), "\(message)")
                }
                #expect(chmod(log, 0o700) == 0)
                let outcome = try await Tool.outcome(of: waiting)
                #expect(outcome.end == .exited(0), "\(outcome.message)\n\(sequencer.child.report)")
            }
        }

        /// Starts a sequencer as an ordinary user, who owns the log.
        private func start(_ site: Site) async throws -> RunningSequencer {
            if geteuid() == 0 {
                // The folder is made here, since that user may not write in the site's.
                #expect(mkdir(site.path("log"), 0o700) == 0 || errno == EEXIST)
                #expect(chown(site.path("log"), 65_534, 65_534) == 0)
            }
            return try await Site.$prefix.withValue(Self.ordinary) {
                try await site.sequencer(data: "log")
            }
        }

        private func permissions(of path: String) throws -> Int {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            return try #require(attributes[.posixPermissions] as? Int)
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
