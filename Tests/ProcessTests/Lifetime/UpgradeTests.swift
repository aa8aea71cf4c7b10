import Conflux
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Programs with two versions of one state: see Tests/VaryingWorker.
    struct UpgradeTests {
        private static let store = "ledger/shared"

        @Test(.timeLimit(.minutes(3)))
        func `six programs are replaced one by one, and one entry raises the version`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                var programs: [Child] = []
                var receipts: UInt64 = 0
                for number in 1...6 {
                    programs.append(try await dispatching("old-\(number)", site, sequencer))
                }
                for index in 0..<6 {
                    // The third one is rolled back once before the version rises.
                    let names =
                        index == 2
                        ? ["new-both-2", "old-again", "new-both-3"] : ["new-both-\(index)x"]
                    for name in names {
                        receipts += try await end(programs[index], site)
                        programs[index] = try await dispatching(name, site, sequencer)
                        // It gets receipts for what only version 1 takes, until the last one is replaced.
                        if index < 5 {
                            let status = try await site.status(
                                of: Self.store, at: sequencer.address)
                            #expect(status[key: "schemaVersion"]?.number == 1)
                        }
                        for program in programs { try await progress(of: program, site) }
                    }
                }
                let upgraded = try await site.event("upgraded", of: sequencer.child)
                #expect(upgraded[key: "schemaVersion"]?.number == 2)
                for program in programs { try await progress(of: program, site) }
                for program in programs { receipts += try await end(program, site) }

                _ = try await site.varyingWorker("new-both-7", hosting: "ledger", of: sequencer)
                let booked = try await site.dispatch(
                    #"{"book":{"amount":5,"under":"rent"}}"#, to: Self.store, at: sequencer.address)
                let seen = try await site.sightings(
                    of: "ledger", at: sequencer.address, in: ["new-both-7"], from: booked)
                #expect(seen.map(\.state) == [#"{"sums":{"rent":5,"total":\#(receipts)}}"#])
                try await expectRefused("old-7", site, sequencer, saying: "newer program")
            }
        }

        /// Starts a program that dispatches until it is told to end, and dies if a receipt takes longer than two seconds.
        private func dispatching(
            _ name: String, _ site: Site, _ sequencer: RunningSequencer
        ) async throws -> Child {
            let child = try site.start(
                ["--connect", sequencer.address, "--name", name], program: "VaryingWorker",
                variables: ["VARYING_DISPATCHES": "1"])
            _ = try await site.event("ready", of: child)
            return child
        }

        /// Waits until a program has got receipts for what it dispatched after this call.
        private func progress(of program: Child, _ site: Site) async throws {
            let before = program.output.soFar.count
            _ = try await program.output.line(before + 1)
            #expect(program.isRunning, "\(program.report)")
        }

        /// - Returns: How many receipts the program got.
        private func end(_ program: Child, _ site: Site) async throws -> UInt64 {
            program.signal(SIGTERM)
            #expect(try await program.end() == .exited(0), "\(program.report)")
            let ended = try await site.event("ended", of: program)
            return try #require(ended[key: "count"]?.number)
        }

        @Test(.timeLimit(.minutes(3)))
        func `a migration that fails changes nothing, whether it throws, traps or hangs`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let old = try await site.varyingWorker("old-1", hosting: "ledger", of: sequencer)
                try await site.dispatch(
                    lines: lines(of: 100), to: Self.store, at: sequencer.address)
                try await expectRefused("new-1", site, sequencer, saying: "old-1")
                old.signal(SIGTERM)
                #expect(try await old.end() == .exited(0))
                let before = try await site.status(of: Self.store, at: sequencer.address)

                try await expectRefused("new-throwing", site, sequencer, saying: "TooMuch")
                let trapping = try site.startVaryingWorker(
                    "new-trapping", hosting: "ledger", of: sequencer)
                #expect(try await trapping.end() == .killed(SIGILL))
                _ = try await site.event("upgradeFailed", of: sequencer.child) {
                    $0[key: "message"]?.string?.contains("new-trapping") == true
                }
                try await expectTwoDeaths("new-trapping", site, sequencer)
                try await expectRefused("new-hanging", site, sequencer, saying: "in time")
                let after = try await site.status(of: Self.store, at: sequencer.address)
                #expect(after == before)

                // The old program, and a newer one that is correct, find everything as it was.
                let again = try await site.varyingWorker("old-2", hosting: "ledger", of: sequencer)
                let last = try await site.dispatch(
                    lines: lines(of: 1), to: Self.store, at: sequencer.address)
                let seen = try await site.sightings(
                    of: "ledger", at: sequencer.address, in: ["old-2"], from: last)
                #expect(seen.map(\.state) == [#"{"total":101}"#])
                again.signal(SIGTERM)
                #expect(try await again.end() == .exited(0))
                _ = try await site.varyingWorker("new-2", hosting: "ledger", of: sequencer)
                // Another program of the same version makes another state of the snapshot.
                try await expectRefused("new-other", site, sequencer, saying: "another state")
            }
        }

        @Test func `a host of an older version whose migration traps does not die of it for ever`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let old = try await site.varyingWorker("old-1", hosting: "ledger", of: sequencer)
                try await expectTwoDeaths("new-both-trapping", site, sequencer)
                // Others are as before, and so is the store.
                let last = try await site.dispatch(
                    lines: lines(of: 1), to: Self.store, at: sequencer.address)
                let seen = try await site.sightings(
                    of: "ledger", at: sequencer.address, in: ["old-1"], from: last)
                #expect(seen.map(\.state) == [#"{"total":1}"#])
                #expect(old.isRunning)
            }
        }

        @Test(.timeLimit(.minutes(3)))
        func `receipts stay true, since a newer program begins where the older one ends`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let old = try await site.varyingWorker("old-1", hosting: "ledger", of: sequencer)
                _ = try await site.dispatch(
                    #"{"add":{"amount":500}}"#, to: Self.store, at: sequencer.address)
                // A planned stop leaves a snapshot.
                old.signal(SIGTERM)
                #expect(try await old.end() == .exited(0))
                let new = try await site.varyingWorker("new-1", hosting: "ledger", of: sequencer)
                let seen = try await site.sightings(
                    of: "ledger", at: sequencer.address, in: ["new-1"], from: 1)
                #expect(seen.map(\.state) == [#"{"sums":{"total":500}}"#])
                new.signal(SIGTERM)
                #expect(try await new.end() == .exited(0))
                _ = try await Tool.outcome(
                    of: try site.start(
                        ["drop", Self.store, "--yes", "--connect", sequencer.address]))

                let killed = try await site.varyingWorker("old-2", hosting: "ledger", of: sequencer)
                _ = try await site.dispatch(
                    #"{"add":{"amount":500}}"#, to: Self.store, at: sequencer.address)
                killed.signal(SIGKILL)
                _ = try await killed.end()
                _ = try await site.event("left", of: sequencer.child) {
                    $0[key: "name"] == "old-2"
                }
                try await expectRefused("new-2", site, sequencer, saying: "--replay")
                let upgrade = try site.start(
                    [
                        "upgrade", Self.store, "--replay", "--json", "--timeout", "30s",
                        "--connect",
                        sequencer.address,
                    ])
                let replayed = try await replaying("new-3", site, sequencer)
                #expect(try await upgrade.end() == .exited(0), "\(upgrade.report)")
                // The newer rule refuses what the older one took: that was the choice.
                let last = try await site.sightings(
                    of: "ledger", at: sequencer.address, in: ["new-3"], from: 1)
                #expect(last.map(\.state) == [#"{"sums":{"total":0}}"#])
                #expect(replayed.isRunning)
            }
        }

        @Test(.timeLimit(.minutes(2)))
        func `the version rises when the workers want it: when told, or never because of one`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let old = try await site.varyingWorker("old-1", hosting: "ledger", of: sequencer)
                let strict = try await waiting("new-both-never", "never", site, sequencer)
                let told = try await waiting("new-both-told", "told", site, sequencer)
                // From here on every live host understands version 2.
                #expect(try await end(old) == .exited(0))
                _ = try await site.event("left", of: sequencer.child) { $0[key: "name"] == "old-1" }
                let refused = try await upgrade(site, sequencer)
                #expect(refused.end == .exited(80), "\(refused.message)")
                #expect(refused.message.contains("never lets it rise"), "\(refused.message)")

                #expect(try await end(strict) == .exited(0))
                // What only version 1 takes, so the version has not risen by itself.
                let last = try await site.dispatch(
                    #"{"add":{"amount":500}}"#, to: Self.store, at: sequencer.address)
                let seen = try await site.sightings(
                    of: "ledger", at: sequencer.address, in: ["new-both-told"], from: last)
                #expect(seen.map(\.state) == [#"{"total":500}"#])
                let upgraded = try await upgrade(site, sequencer)
                #expect(upgraded.end == .exited(0), "\(upgraded.message)")
                let event = try await site.event("upgraded", of: sequencer.child)
                #expect(event[key: "schemaVersion"]?.number == 2)
                #expect(told.isRunning)
            }
        }

        private func waiting(
            _ name: String, _ policy: String, _ site: Site, _ sequencer: RunningSequencer
        ) async throws -> Child {
            let child = try site.startVaryingWorker(
                name, hosting: "ledger", of: sequencer, ["--upgrades", policy])
            _ = try await site.event("ready", of: child)
            return child
        }

        private func end(_ child: Child) async throws -> Child.End {
            child.signal(SIGTERM)
            return try await child.end()
        }

        private func upgrade(
            _ site: Site, _ sequencer: RunningSequencer
        ) async throws -> Tool.Outcome {
            try await site.run(
                "upgrade", Self.store, "--json", "--timeout", "20s", "--connect", sequencer.address)
        }

        /// Starts a worker again and again until its store may be upgraded: the command may not have asked yet.
        private func replaying(
            _ name: String, _ site: Site, _ sequencer: RunningSequencer
        ) async throws -> Child {
            for _ in 0..<100 {
                let child = try site.startVaryingWorker(name, hosting: "ledger", of: sequencer)
                let line = try await child.output.line(0)
                if line?.contains(#""event":"ready""#) == true { return child }
                _ = try await child.end()
            }
            throw Failure("\(name) was never allowed to judge entries again")
        }

        private func expectRefused(
            _ name: String, _ site: Site, _ sequencer: RunningSequencer,
            _ options: [String] = [], saying text: String
        ) async throws {
            let outcome = try await Tool.outcome(
                of: try site.startVaryingWorker(name, hosting: "ledger", of: sequencer, options))
            #expect(outcome.end == .exited(70), "\(outcome.message)")
            let message = try #require(
                try object(outcome.errors.last ?? "")[key: "error"]?[key: "message"]?.string)
            #expect(message.contains(Self.store) && message.contains(text), "\(message)")
        }

        /// With a journal, a program dies twice of a migration, and then gets an error. If the sequencer remembers the last
        /// death, it gets an error at once.
        private func expectTwoDeaths(
            _ name: String, _ site: Site, _ sequencer: RunningSequencer
        ) async throws {
            var ends: [Child.End] = []
            for _ in 0..<10 {
                let outcome = try await Tool.outcome(
                    of: try site.startVaryingWorker(
                        name, hosting: "ledger", of: sequencer,
                        ["--journal", "\(site.folder)/journal"]))
                ends.append(outcome.end)
                if outcome.errors.last?.contains("ended 2 times in a row") == true { break }
            }
            #expect(ends.last == .exited(70), "\(ends)")
            #expect(ends.count { $0 == .killed(SIGILL) } == 2, "\(ends)")
        }

        private func lines(of count: Int) -> [String] {
            (0..<count).map { _ in #"{"add":{"amount":1}}"# }
        }
    }
}
