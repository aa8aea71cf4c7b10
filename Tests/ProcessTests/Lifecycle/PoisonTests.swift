import Conflux
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Workers that crash at an entry.
    struct PoisonTests {
        @Test(arguments: ["explode", #"{"add":{"amount":-1}}"#])
        func `a worker that crashed twice at an entry stops that store, and serves the others`(
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
                // Later entries, while no worker is running.
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
                let status = try await status(site, sequencer) {
                    $0.contains("stopped before entry")
                }
                #expect(status.contains("mine/shared stopped before entry \(poisoned) in w"))
                third.signal(SIGTERM)
                #expect(try await third.end() == .exited(0))
                _ = try await self.status(site, sequencer) { !$0.contains("stopped") }
            }
        }

        /// One of the actions traps when it is applied, the other when it is decoded.
        @Test(arguments: ["explode", #"{"add":{"amount":-1}}"#])
        func `a skipped entry has no effect, in workers that crashed at it and in later ones`(
            _ poison: String
        ) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let first = try ["v", "w"].map { try startWorker($0, site, of: sequencer) }
                for child in first { _ = try await event("ready", of: child) }
                let before = try await dispatch(
                    site, sequencer, "mine", #"{"add":{"amount":2}}"#, ["--wait", "applied"])
                try await expectRejected(site, sequencer, before, "passed")
                let poisoned = try await dispatch(site, sequencer, "mine", poison)
                for child in first { #expect(try await isTrap(child.end())) }
                try await dispatch(site, sequencer, "mine", #"{"add":{"amount":4}}"#)
                for name in ["v", "w"] {
                    #expect(try await isTrap(startWorker(name, site, of: sequencer).end()))
                }
                let stopped = try ["v", "w"].map { try startWorker($0, site, of: sequencer) }
                for child in stopped {
                    let stop = try await event("storeStopped", of: child)
                    #expect(stop[key: "sequence"]?.number == poisoned)
                }

                try await expectRejected(site, sequencer, 1, "notAnAction")
                for _ in 1...2 {
                    let skip = try await site.run(
                        "log", "skip", "\(poisoned)", "--json", "--connect", sequencer.address)
                    #expect(skip.end == .exited(0), "\(skip.message)")
                    let line = try object(skip.output.first ?? "")
                    #expect(line[key: "skipped"]?.number == poisoned)
                    #expect(line[key: "target"] == "mine/shared")
                }

                // Started again, the programs continue where they stopped.
                for child in stopped {
                    child.signal(SIGTERM)
                    #expect(try await child.end() == .exited(0))
                }
                for name in ["v", "w", "x"] {
                    let child = try startWorker(name, site, of: sequencer)
                    let ready = try await event("ready", of: child)
                    #expect(ready[key: "stores"]?.array == ["mine/shared", "tally/shared"])
                }
                let after = try await dispatch(
                    site, sequencer, "mine", #"{"add":{"amount":1}}"#)
                let seen = try await site.sightings(
                    of: "mine", at: sequencer.address, in: ["v", "w", "x"], from: after)
                #expect(seen.map(\.state) == Array(repeating: #"{"count":7}"#, count: 3))
                let log = try await site.run("log", "--json", "--connect", sequencer.address)
                #expect(log.output.count { $0.contains(#""kind":"skipped""#) } == 1)
            }
        }

        @Test
        func `an entry that another worker has applied is not skipped, and its state is loaded`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let tough = try startWorker("tough", site, of: sequencer)
                _ = try await event("ready", of: tough)
                let first = try startWorker("w", site, of: sequencer)
                _ = try await event("ready", of: first)
                try await dispatch(site, sequencer, "mine", #"{"add":{"amount":2}}"#)
                let poisoned = try await dispatch(
                    site, sequencer, "mine", "explode", ["--wait", "applied"])
                #expect(try await isTrap(first.end()))
                #expect(try await isTrap(startWorker("w", site, of: sequencer).end()))
                let third = try startWorker("w", site, of: sequencer)
                _ = try await event("storeStopped", of: third)
                third.signal(SIGTERM)
                #expect(try await third.end() == .exited(0))

                // No other actions are dispatched: the wish to skip is reason enough to fetch the state.
                try await expectRejected(site, sequencer, poisoned, "passed")
                let snapshot = try await event("snapshot", of: sequencer.child)
                #expect(snapshot[key: "store"] == "mine/shared")
                #expect(try #require(snapshot[key: "sequence"]?.number) > poisoned)
                let fourth = try startWorker("w", site, of: sequencer)
                let ready = try await event("ready", of: fourth)
                #expect(ready[key: "stores"]?.array == ["mine/shared", "tally/shared"])
                let after = try await dispatch(
                    site, sequencer, "mine", #"{"add":{"amount":1}}"#)
                let seen = try await site.sightings(
                    of: "mine", at: sequencer.address, in: ["tough", "w"], from: after)
                #expect(seen.map(\.state) == Array(repeating: #"{"count":3}"#, count: 2))
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

        @Test func `the second of two workers on one journal learns that it is in use`()
            async throws
        {
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
            try startWorker("w", site, of: sequencer, journal: "journal", options)
        }

        private func startWorker(
            _ name: String, _ site: Site, of sequencer: RunningSequencer, journal: String? = nil,
            _ options: [String] = []
        ) throws -> Child {
            try site.start(
                [
                    "--json", "--name", name, "--connect", sequencer.address, "--journal",
                    site.path(journal ?? "journal-\(name)"),
                ] + options, program: "TrappingWorker")
        }

        /// Expects that an entry can't be skipped, once all nodes have reported how far they are.
        private func expectRejected(
            _ site: Site, _ sequencer: RunningSequencer, _ sequence: UInt64, _ code: JSONValue
        ) async throws {
            var skip: Tool.Outcome
            repeat {
                skip = try await site.run(
                    "log", "skip", "\(sequence)", "--json", "--connect", sequencer.address)
            } while skip.message.contains("ask again")
            #expect(skip.end == .exited(80), "\(skip.message)")
            let error = try object(skip.errors.last ?? "")[key: "error"]
            #expect(error?[key: "code"] == code, "\(skip.message)")
        }

        /// Waits until the sequencer's status is as expected.
        private func status(
            _ site: Site, _ sequencer: RunningSequencer, until isWanted: (String) -> Bool
        ) async throws -> String {
            let deadline = ContinuousClock.now + .seconds(60)
            var text = ""
            while ContinuousClock.now < deadline {
                let status = try await site.run("status", "--connect", sequencer.address)
                #expect(status.end == .exited(0), "\(status.message)")
                text = status.output.joined(separator: "\n")
                if isWanted(text) { return text }
            }
            throw Failure("the status stayed:\n\(text)")
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
