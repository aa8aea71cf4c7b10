import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// A stream, and commands that follow a log, whose history is lost under them.
    struct LostStreamTests {
        private static let lines = (1...60).map { #"{"set":{"at":"/line","value":\#($0)}}"# }

        /// A sequencer, of whose log there is a backup.
        private struct Backup {
            var sequencer: RunningSequencer
            let site: Site

            init(_ site: Site) async throws {
                self.site = site
                sequencer = try await site.sequencer(data: "log")
                _ = try await site.worker("alpha", of: sequencer)
            }

            func make() async throws {
                let backup = try await site.run(
                    "backup", site.path("copy"), "--data", site.path("log"))
                #expect(backup.end == .exited(0), "\(backup.message)")
            }

            /// Kills the sequencer, and serves a copy of the log as it was.
            mutating func restore() async throws {
                sequencer.child.signal(SIGKILL)
                _ = try await sequencer.child.end()
                let restored = try await site.run(
                    "restore", site.path("copy"), "--data", site.path("restored"))
                #expect(restored.end == .exited(0), "\(restored.message)")
                sequencer = try await site.sequencer(data: "restored", at: sequencer)
            }
        }

        private func stream(_ site: Site, _ address: String, _ options: String...) throws -> Child {
            try site.start(
                [
                    "dispatch", "document/*", "-", "--json", "--connect", address, "--timeout",
                    "20s",
                ] + options, input: .pipe)
        }

        /// The lines that the log has as actions, in order.
        private func found(_ site: Site, _ address: String) async throws -> [UInt64] {
            let log = try await site.run("log", "--json", "--connect", address)
            #expect(log.end == .exited(0), "\(log.message)")
            return try log.output.compactMap {
                try object($0)[key: "action"]?[key: "set"]?[key: "value"]?.number
            }
        }

        /// The report on standard error.
        private func loss(_ outcome: Tool.Outcome) throws -> JSONValue {
            let errors = outcome.errors.compactMap { try? object($0)[key: "error"] }
            return try #require(
                errors.first { $0[key: "code"] == "historyLost" }, "\(outcome.message)")
        }

        /// Lets a stream get receipts for all lines, of which a backup has only the first 30.
        private func overtake(_ backup: inout Backup, _ child: Child) async throws {
            child.feed(Self.lines.prefix(30))
            _ = try await child.output.line(29)
            try await backup.make()
            child.feed(Self.lines.suffix(30))
            _ = try await child.output.line(59)
            try await backup.restore()
        }

        @Test
        func
            `a resumable stream says which receipts are void, and the next run sends exactly the rest`()
            async throws
        {
            try await withSite { site in
                var backup = try await Backup(site)
                let child = try stream(site, backup.sequencer.address, "--resume", "nightly")
                try await overtake(&backup, child)
                // It ends by itself, although its input has no end.
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(82), "\(outcome.message)")
                let receipts = try outcome.output.map { try object($0)[key: "sequence"]?.number }
                #expect(receipts.count == 60)
                let loss = try loss(outcome)
                #expect(loss[key: "from"]?.number == receipts[30])
                #expect(loss[key: "through"]?.number == receipts[59])
                let message = loss[key: "message"]?.string ?? ""
                #expect(message.contains("\(receipts[30] ?? 0) to \(receipts[59] ?? 0) are void"))
                #expect(try await found(site, backup.sequencer.address) == Array(1...30))

                let path = try site.write(Self.lines.joined(separator: "\n") + "\n", to: "lines")
                let next = try await site.run(
                    "dispatch", "document/*", "--file", path, "--resume", "nightly", "--json",
                    "--connect", backup.sequencer.address)
                #expect(next.end == .exited(0), "\(next.message)")
                let results = try next.output.map { try object($0) }
                #expect(results.count == 60)
                #expect(results.suffix(30).allSatisfy { $0[key: "sequence"] != nil })
                #expect(try await found(site, backup.sequencer.address) == Array(1...60))
            }
        }

        @Test func `a run that ended before the restore is continued with what the log lacks`()
            async throws
        {
            try await withSite { site in
                var backup = try await Backup(site)
                let child = try stream(site, backup.sequencer.address, "--resume", "nightly")
                child.feed(Self.lines.prefix(30))
                _ = try await child.output.line(29)
                try await backup.make()
                child.feed(Self.lines.suffix(30))
                child.endInput()
                #expect(try await child.end() == .exited(0))

                // A second process knows of all lines by the sequencer alone, and waits for more.
                let second = try stream(site, backup.sequencer.address, "--resume", "nightly")
                second.feed(Self.lines)
                #expect(try await second.output.line(59) == #"{"line":60,"resumed":true}"#)
                try await backup.restore()
                let outcome = try await Tool.outcome(of: second)
                #expect(outcome.end == .exited(82), "\(outcome.message)")
                _ = try loss(outcome)

                let third = try stream(site, backup.sequencer.address, "--resume", "nightly")
                third.feed(Self.lines)
                third.endInput()
                #expect(try await third.end() == .exited(0), "\(third.report)")
                #expect(try await found(site, backup.sequencer.address) == Array(1...60))
            }
        }

        @Test func `a stream without a key ends with the code for unknown outcomes`() async throws {
            try await withSite { site in
                var backup = try await Backup(site)
                let child = try stream(site, backup.sequencer.address)
                try await overtake(&backup, child)
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(82), "\(outcome.message)")
                let receipts = try outcome.output.map { try object($0)[key: "sequence"]?.number }
                #expect(try loss(outcome)[key: "from"]?.number == receipts[30])
                #expect(try await found(site, backup.sequencer.address) == Array(1...30))
            }
        }

        @Test func `a key that the restored log does not know makes the receipts unknown`()
            async throws
        {
            try await withSite { site in
                var backup = try await Backup(site)
                try await backup.make()
                let child = try stream(site, backup.sequencer.address, "--resume", "nightly")
                child.feed(Self.lines)
                _ = try await child.output.line(59)
                try await backup.restore()
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(82), "\(outcome.message)")
                let error = try #require(
                    outcome.errors.compactMap { try? object($0)[key: "error"] }.first,
                    "\(outcome.message)")
                #expect(error[key: "code"] == "sessionForgotten")
                let message = error[key: "message"]?.string ?? ""
                #expect(message.contains("void") && message.contains("same key"), "\(message)")

                let path = try site.write(Self.lines.joined(separator: "\n") + "\n", to: "lines")
                for _ in 1...2 {
                    let next = try await site.run(
                        "dispatch", "document/*", "--file", path, "--resume", "nightly",
                        "--connect", backup.sequencer.address)
                    #expect(next.end == .exited(0), "\(next.message)")
                    #expect(try await found(site, backup.sequencer.address) == Array(1...60))
                }
            }
        }

        @Test func `a restart that loses nothing ends no stream`() async throws {
            try await withSite { site in
                var sequencer = try await site.sequencer(data: "log")
                _ = try await site.worker("alpha", of: sequencer)
                let child = try stream(site, sequencer.address, "--resume", "nightly")
                child.feed(Self.lines.prefix(30))
                _ = try await child.output.line(29)
                sequencer.child.signal(SIGKILL)
                _ = try await sequencer.child.end()
                sequencer = try await site.sequencer(data: "log", at: sequencer)
                child.feed(Self.lines.suffix(30))
                child.endInput()
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(0), "\(outcome.message)")
                #expect(try await found(site, sequencer.address) == Array(1...60))
            }
        }

        @Test(arguments: [true, false])
        func `a followed log says where its history begins again`(isJSON: Bool) async throws {
            try await withSite { site in
                var backup = try await Backup(site)
                let address = backup.sequencer.address
                let child = try site.start(
                    ["log", "--follow", "--connect", address] + (isJSON ? ["--json"] : []))
                _ = try await child.output.line(0)
                try await backup.make()
                _ = try await site.dispatch("increment", to: "counter", at: address)
                _ = try await child.output.first { $0.contains("increment") }
                try await backup.restore()
                _ = try await child.errors.first { $0.contains("the log's history has changed") }
                if isJSON {
                    _ = try await child.output.first {
                        try object($0)[key: "event"] == "historyLost"
                    }
                }
                child.signal(SIGTERM)
                #expect(try await child.end() == .exited(0))
                let kinds = try await child.output.all().filter { _ in isJSON }
                    .map { try object($0)[key: "event"] != nil }
                #expect(kinds.filter(\.self).count == (isJSON ? 1 : 0))
            }
        }

        @Test func `a followed store says that its history was lost, and goes on`() async throws {
            try await withSite { site in
                var backup = try await Backup(site)
                let address = backup.sequencer.address
                _ = try await site.dispatch("increment", to: "counter", at: address)
                try await backup.make()
                for _ in 1...3 {
                    _ = try await site.dispatch("increment", to: "counter", at: address)
                }
                let child = try site.start([
                    "observe", "counter", "--follow", "--json", "--connect", address,
                ])
                _ = try await child.output.first { $0.contains(#"{"count":4}"#) }
                try await backup.restore()
                _ = try await child.errors.first { $0.contains("the log has lost the entries") }
                _ = try await child.output.first {
                    try object($0)[key: "event"] == "historyLost"
                }
                // The present state has a lower number than the last one that was shown. It comes as soon as the
                // worker is back, and not only when the last question has expired.
                let mark = child.output.count
                _ = try await child.output.first(from: mark - 1, within: .seconds(5)) {
                    $0.contains(#"{"count":1}"#)
                }
                child.signal(SIGTERM)
                #expect(try await child.end() == .exited(0))
            }
        }

        @Test func `a followed store is shown at once after a restart that lost nothing`()
            async throws
        {
            try await withSite { site in
                var sequencer = try await site.sequencer(data: "log")
                let address = sequencer.address
                let worker = try await site.worker("alpha", of: sequencer)
                let child = try site.start([
                    "observe", "counter", "--follow", "--json", "--connect", address,
                ])
                _ = try await child.output.first { $0.contains(#"{"count":0}"#) }
                sequencer.child.signal(SIGKILL)
                _ = try await sequencer.child.end()
                sequencer = try await site.sequencer(data: "log", at: sequencer)
                _ = try await worker.child.output.first {
                    try object($0)[key: "event"] == "reconnected"
                }
                _ = try await site.dispatch("increment", to: "counter", at: address)
                _ = try await child.output.first(within: .seconds(5)) {
                    $0.contains(#"{"count":1}"#)
                }
            }
        }
    }
}
