import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// A log that discards the entries that nobody needs.
    struct RetentionTests {
        /// The most that the log keeps, by its own count.
        private static let keepMiB = 2
        /// The most that the log may occupy on disk. SQLite's journal takes up to 20 MiB in any case, and the
        /// log has two rounds of load for the document until the next snapshot exists.
        private static let diskBytesMax = 32 << 20
        /// The most memory that the sequencer may use, however long it runs.
        private static let memoryBytesMax = 256 << 20
        /// How much is dispatched in one round.
        private static let roundMiB = 2
        private static let roundLineCount = roundMiB * 64
        /// How long the load lasts. It has at least five rounds, or twelve if it lasts.
        private static let seconds =
            ProcessInfo.processInfo.environment["CONFLUX_RETENTION_SECONDS"].flatMap { Int($0) }
            ?? 0

        @Test(.timeLimit(.minutes(5 + seconds / 60)))
        func `under load the log stays below its bound, and late workers start from a snapshot`()
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
                while round < (Self.seconds > 0 ? 12 : 5) || ContinuousClock.now < end {
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
                // The end is read after the snapshot, so that the snapshot can't be newer.
                let logEnd = try #require(
                    try await site.status(at: sequencer.address)[key: "last"]?.number)
                #expect(floor > life && snapshot >= floor - 1 && snapshot <= logEnd)

                // The log no longer has the entries that the new worker would need without a snapshot.
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
        /// If the load is faster than the replicas, its entries stay in the log until the replicas report what
        /// they have. Their speed depends on the machine, so the load waits for them.
        ///
        /// - Returns: The number of the last action that this function dispatched, if any.
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
                // Digest points and snapshots are made only as the log grows.
                last = try await load(site, sequencer, 0, lineCount: 16)
            }
        }

        /// Dispatches a round of actions, which leave little in the document.
        private func load(
            _ site: Site, _ sequencer: RunningSequencer, _ round: Int, lineCount: Int
        ) async throws -> UInt64 {
            let padding = String(repeating: "x", count: 16 << 10)
            let lines = (0..<lineCount).map { index in
                #"{"set":{"at":"/\#(index % 10)","value":"\#(round) \#(index) \#(padding)"}}"#
            }
            // A store with hardly any entries must not keep the entries of others in the log.
            // The timeout is long, since in hours a disk that other programs use is sometimes slow.
            _ = try await site.dispatch(
                "increment", to: "counter", at: sequencer.address, "--timeout", "60s")
            return try await site.dispatch(
                lines: lines, to: "document", at: sequencer.address, "--timeout", "60s")
        }

        /// Expects that nodes have the same state after one more action.
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

        /// Expects that `conflux log` says which entries it lacks.
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
