import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// Workers that die of an entry.
    struct PoisonTests {
        @Test(arguments: ["explode", #"{"add":{"amount":-1}}"#])
        func `a worker that died of an entry twice stops that store, and serves the others`(
            action: String
        ) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let first = try startWorker(site, of: sequencer)
                let ready = try await event("ready", of: first)
                #expect(ready[key: "stores"]?.array == ["mine/shared", "tally/shared"])
                try await dispatch(site, sequencer, "mine", #"{"add":{"amount":2}}"#)
                try await dispatch(site, sequencer, "tally", #"{"add":{"amount":1}}"#)
                let poisoned = try await dispatch(site, sequencer, "mine", action)
                #expect(try await isTrap(first.end()))
                // Behind it, while nobody is there.
                try await dispatch(site, sequencer, "mine", #"{"add":{"amount":4}}"#)
                try await dispatch(site, sequencer, "tally", #"{"add":{"amount":1}}"#)

                #expect(try await isTrap(startWorker(site, of: sequencer).end()))

                let third = try startWorker(site, of: sequencer)
                let stop = try await event("storeStopped", of: third)
                #expect(stop[key: "store"] == "mine/shared")
                #expect(stop[key: "sequence"]?.number == poisoned)
                let message = try #require(stop[key: "message"]?.string)
                #expect(message.contains("mine/shared stopped before entry \(poisoned):"))
                #expect(message.contains("2 times in a row"))
                #expect(message.contains("conflux log skip \(poisoned)"))
                #expect(message.contains(site.path("journal")))
                #expect(
                    try await event("ready", of: third)[key: "stores"]?.array == ["tally/shared"])

                try await dispatch(
                    site, sequencer, "tally", #"{"add":{"amount":1}}"#, ["--wait", "applied"])
                let seen = try await site.run(
                    "observe", "tally", "--node", "w", "--json", "--connect", sequencer.address)
                #expect(try object(seen.output.first ?? "")[key: "state"] == ["count": 3])
                third.signal(SIGTERM)
                #expect(try await third.end() == .exited(0))
            }
        }

        @Test func `a worker all of whose stores are stopped ends, and says why`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let options = ["--store", "mine"]
                let first = try startWorker(site, of: sequencer, options)
                _ = try await event("ready", of: first)
                let poisoned = try await dispatch(site, sequencer, "mine", "explode")
                #expect(try await isTrap(first.end()))
                #expect(try await isTrap(startWorker(site, of: sequencer, options).end()))
                let third = try await Tool.outcome(of: startWorker(site, of: sequencer, options))
                #expect(third.end == .exited(70))
                let error = try object(third.errors.last ?? "")[key: "error"]
                #expect(error?[key: "code"] == "storeStopped")
                #expect(error?[key: "message"]?.string?.contains("skip \(poisoned)") == true)
            }
        }

        @Test func `two workers on one journal: the second is told so`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let first = try startWorker(site, of: sequencer)
                _ = try await event("ready", of: first)
                let second = try await site.run(
                    "worker", "--json", "--connect", sequencer.address, "--journal",
                    site.path("journal"))
                #expect(second.end == .exited(73))
                let error = try object(second.errors.last ?? "")[key: "error"]
                #expect(error?[key: "code"] == "journalInUse")
                #expect(error?[key: "message"]?.string?.contains("another file") == true)
            }
        }

        // MARK: Processes

        private func startWorker(
            _ site: Site, of sequencer: RunningSequencer, _ options: [String] = []
        ) throws -> Child {
            try site.start(
                [
                    "--json", "--name", "w", "--connect", sequencer.address, "--journal",
                    site.path("journal"),
                ] + options, program: "TrappingWorker")
        }

        private func isTrap(_ end: Child.End) -> Bool {
            [.killed(SIGTRAP), .killed(SIGILL)].contains(end)
        }

        private func event(_ name: String, of child: Child) async throws -> JSONValue {
            let found = try await child.output.first { line in
                try object(line)[key: "event"] == .string(name)
            }
            return try object(found.line)
        }

        /// - Returns: The entry's number.
        @discardableResult
        private func dispatch(
            _ site: Site, _ sequencer: RunningSequencer, _ target: String, _ action: String,
            _ options: [String] = []
        ) async throws -> UInt64 {
            let child = try site.start(
                ["dispatch", target, action, "--json", "--connect", sequencer.address] + options)
            let outcome = try await Tool.outcome(of: child)
            #expect(outcome.end == .exited(0), "\(outcome.message)")
            return try #require(try object(outcome.output.first ?? "")[key: "sequence"]?.number)
        }
    }
}
