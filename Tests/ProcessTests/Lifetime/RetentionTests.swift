import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// A log that gives up what nobody needs.
    struct RetentionTests {
        /// What is kept at most, as the log counts it.
        private static let keepMiB = 2
        /// What that comes to on the disk: SQLite's journal has 20 MiB whatever it holds, and of the
        /// document's log there are two rounds of load until the next snapshot is there.
        private static let diskBytesMax = 32 << 20
        /// The most memory of the sequencer, however long it runs.
        private static let memoryBytesMax = 256 << 20
        /// How much comes in one round.
        private static let roundMiB = 2
        private static let roundLineCount = roundMiB * 64
        /// For how long load goes on; twelve rounds of it at least.
        private static let seconds =
            ProcessInfo.processInfo.environment["CONFLUX_RETENTION_SECONDS"].flatMap { Int($0) }
            ?? 0

        @Test(.timeLimit(.minutes(5 + seconds / 60)))
        func `under load the log stays below its bound, and latecomers begin at a snapshot`()
            async throws
        {
            try await withSite { site in
                let options = ["--keep-bytes", "\(Self.keepMiB)MiB", "--keep-entries", "200"]
                var sequencer = try await site.sequencer(
                    data: "log", options[0], options[1], options[2], options[3])
                _ = try await site.worker("alpha", of: sequencer)
                _ = try await site.worker("beta", of: sequencer)
                var last: UInt64 = 0
                var most = 0
                var round = 0
                let end = ContinuousClock.now + .seconds(Self.seconds)
                while round < 12 || ContinuousClock.now < end {
                    let former = last
                    last = try await load(site, sequencer, round, lineCount: Self.roundLineCount)
                    most = max(most, try site.diskBytes(of: "log"))
                    round += 1
                    try #require(most < Self.diskBytesMax, "\(most) bytes on the disk")
                    last = try await untilSaved(site, sequencer, from: former) ?? last
                }
                let load = "\(round * Self.roundMiB) MiB of actions"
                print("retention: \(load), \(most >> 20) MiB on the disk at most")
                #if os(Linux)
                    try site.expectMemory(of: sequencer, below: Self.memoryBytesMax, load)
                #endif
                let truncated = try await site.event("truncated", of: sequencer.child)
                #expect(try #require(truncated[key: "floor"]?.number) > 1)
                _ = try await site.event("snapshot", of: sequencer.child) {
                    $0[key: "store"] == "document/shared"
                }
                let floor = try #require(
                    try await site.status(at: sequencer.address)[key: "floor"]?.number)
                let document = try await site.status(
                    of: "document/shared", at: sequencer.address)
                let life = try #require(document[key: "life"]?.number)
                let snapshot = try #require(document[key: "snapshot"]?.number)
                // Asked for behind the snapshot: the log has nothing behind this by then.
                let logEnd = try #require(
                    try await site.status(at: sequencer.address)[key: "last"]?.number)
                #expect(floor > life && snapshot >= floor - 1 && snapshot <= logEnd)

                // What it begins with is not in the log any more.
                _ = try await site.worker("late", of: sequencer)
                try await expectSame(site, sequencer, ["alpha", "beta", "late"])
                try await expectTold(site, sequencer, below: floor)

                sequencer.child.signal(SIGTERM)
                #expect(try await sequencer.child.end() == .exited(0))
                let whole = try await site.run("log", "--verify", site.path("log"))
                #expect(whole.end == .exited(0), "\(whole.message)")
                sequencer = try await site.sequencer(
                    data: "log", at: sequencer, options[0], options[1], options[2], options[3])
                let restarted = try #require(
                    try await site.status(at: sequencer.address)[key: "floor"]?.number)
                #expect(restarted >= floor)
                _ = try await site.worker("later", of: sequencer)
                try await expectSame(site, sequencer, ["alpha", "beta", "late", "later"])
            }
        }

        /// Waits until the document has a snapshot that is not older than a number.
        ///
        /// Load that is faster than the replicas stays in the log until they have said what they have.
        /// How fast they are is the machine's matter; so the load waits for them.
        ///
        /// - Returns: The number of the last action that this has dispatched, if any.
        private func untilSaved(
            _ site: Site, _ sequencer: RunningSequencer, from number: UInt64
        ) async throws -> UInt64? {
            var last: UInt64?
            let deadline = ContinuousClock.now + .seconds(120)
            while true {
                let document = try await site.status(
                    of: "document/shared", at: sequencer.address)
                let snapshot = document[key: "snapshot"]?.number ?? 0
                if snapshot >= number { return last }
                try #require(ContinuousClock.now < deadline, "the snapshot is at \(snapshot)")
                // Digest points and snapshots come when the log has grown.
                last = try await load(site, sequencer, 0, lineCount: 16)
            }
        }

        /// Dispatches a round of actions; what they leave in the document is small.
        private func load(
            _ site: Site, _ sequencer: RunningSequencer, _ round: Int, lineCount: Int
        ) async throws -> UInt64 {
            let padding = String(repeating: "x", count: 16 << 10)
            let lines = (0..<lineCount).map { index in
                #"{"set":{"at":"/\#(index % 10)","value":"\#(round) \#(index) \#(padding)"}}"#
            }
            // A store of which nearly nothing comes must not keep the log of the others.
            // A disk that other programs keep busy may take its time, now and then, in hours.
            _ = try await site.dispatch(
                "increment", to: "counter", at: sequencer.address, "--timeout", "60s")
            return try await site.dispatch(
                lines: lines, to: "document", at: sequencer.address, "--timeout", "60s")
        }

        /// Expects that nodes have the same, behind one more action.
        private func expectSame(
            _ site: Site, _ sequencer: RunningSequencer, _ nodes: [String]
        ) async throws {
            for (store, action) in [
                ("document", #"{"increment":{"at":"/n","by":1}}"#), ("counter", "increment"),
            ] {
                let sequence = try await site.dispatch(action, to: store, at: sequencer.address)
                let sightings = try await site.sightings(
                    of: store, at: sequencer.address, in: nodes, from: sequence)
                #expect(Set(sightings.map(\.state)).count == 1)
                #expect(Set(sightings.map(\.sequence)) == [sequence])
            }
        }

        /// Expects that `conflux log` says what it has not.
        private func expectTold(
            _ site: Site, _ sequencer: RunningSequencer, below floor: UInt64
        ) async throws {
            let log = try await site.run(
                "log", "--from", "1", "--json", "--connect", sequencer.address)
            #expect(log.end == .exited(0))
            #expect(log.message.contains("the log begins at "))
            let line = try #require(log.output.first)
            let first = try object(line)
            #expect(try #require(first[key: "sequence"]?.number) >= floor)
            let nothing = try await site.run(
                "log", "--from", "1", "--to", "2", "--json", "--connect", sequencer.address)
            #expect(nothing.end == .exited(0) && nothing.output.isEmpty)
            #expect(nothing.message.contains("the log begins at "))
            let skip = try await site.run(
                "log", "skip", "2", "--json", "--connect", sequencer.address)
            #expect(skip.end == .exited(84))
            #expect(try object(skip.errors.last ?? "")[key: "error"]?[key: "code"] == "noEntry")
        }
    }
}
