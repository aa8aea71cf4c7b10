import Conflux
import Foundation
import Testing

#if os(Linux)
    extension ProcessTests {
        /// All faults that can happen to a cluster, at the same time.
        struct EverythingTests {
            @Test
            func `there is one history, whatever is killed, damaged, late or read repeatedly`()
                async throws
            {
                let lineCount = try RealStreams.lineCount()
                try await withSeed { seed in
                    print("everything: \(lineCount) lines; to repeat: CONFLUX_SEED=\(seed)")
                    try await withSite { site in
                        try await Everything(on: site, lineCount: lineCount).run(seed: seed)
                    }
                }
            }
        }
    }

    /// Three streams of actions, a sequencer and workers that are killed, a log with a damaged entry,
    /// and many readers of the whole log.
    ///
    /// Faults don't follow a clock: the next one happens after some more receipts.
    private struct Everything: Sendable {
        /// Connections come from another host, so that none of them takes the port of a killed sequencer
        /// before it has restarted.
        private static let host = "127.0.0.3"
        private static let names = ["w1", "w2", "w3", "w4"]
        private static let late = "late"
        private static let readerCount = 64
        /// Each round kills the sequencer, a worker, and the dispatcher with a key.
        private static let rounds = 4

        private let site: Site
        private let lineCount: Int
        private let limit: Duration

        init(on site: Site, lineCount: Int) {
            self.site = site
            self.lineCount = lineCount
            limit = RealStreams.limit(lineCount)
        }

        func run(seed: UInt64) async throws {
            var generator = ActionGenerator(seed: seed)
            let old = try await makeOldPart()
            let sequencer = try await site.sequencer(data: "log-damaged", host: Self.host)
            var workers: [RunningWorker] = []
            for name in Self.names { workers.append(try await start(name, sequencer)) }

            let readers = LogReaders()
            async let reading = readers.run(
                Self.readerCount, at: sequencer.address, silenceMax: .seconds(60))
            var streams = [old]
            do {
                let damaged = try await site.event("damaged", of: sequencer.child)
                let from = try #require(damaged[key: "from"]?.number)
                let through = try #require(damaged[key: "through"]?.number)
                let keyed = try KeyedStream(lineCount / 4, on: site, by: &generator)
                let real = try RealStreams(
                    lineCount - lineCount / 4, parts: Self.rounds + 1, on: site,
                    at: sequencer.address, by: &generator, "--timeout", "60s")
                try await suffer(sequencer, &workers, real, keyed)
                streams += try await real.expectations()
                streams.append(try await keyed.finish(at: sequencer.address, within: limit))

                let reference = try await site.expectOneHistory(
                    of: streams, at: sequencer.address, in: Self.names + [Self.late],
                    damage: from...through, within: limit)
                print(
                    """
                    everything: \(reference.applied) applied, \(reference.refused) refused; \
                    \(await keyed.kills) of \(Self.rounds) runs with a key killed under way
                    """)
                #expect(reference.refused > 0 && reference.applied > lineCount / 2)
                readers.finish(through: streams.map(\.lastSequence).max() ?? 0)
                try expect(try await reading, from...through)
            } catch {
                readers.stop()
                throw error
            }
            for worker in workers {
                #expect(worker.child.isRunning, "\(worker.child.report)")
            }
        }

        private func start(
            _ name: String, _ sequencer: RunningSequencer
        ) async throws -> RunningWorker {
            try await site.worker(name, of: sequencer, stores: ["document"])
        }

        // MARK: Old entries

        /// Makes a log with the entries of a counter, followed by those of a document. Damages an entry of
        /// the counter, which no document needs.
        private func makeOldPart() async throws -> StreamExpectation {
            // With this bound, even a small log has a checkpoint after the damage.
            let sequencer = try await site.sequencer(data: "log", "--keep-bytes", "1MiB")
            let counter = try await site.worker("counter", of: sequencer, stores: ["counter"])
            for amount in 1001...1006 {
                _ = try await site.dispatch(
                    #"{"add":{"amount":\#(amount)}}"#, to: "counter", at: sequencer.address)
            }
            let document = try await start("old", sequencer)
            let padding = String(repeating: "x", count: 16 << 10)
            let lines = (0..<32).map {
                #"{"set":{"at":"/old/\#($0 % 4)","value":"\#($0) \#(padding)"}}"#
            }
            let path = try site.write(
                ([#"{"set":{"at":"/old","value":{}}}"#] + lines).joined(separator: "\n") + "\n",
                to: "old.ndjson")
            let outcome = try await site.run(
                "dispatch", "document/*", "--file", path, "--json", "--connect", sequencer.address)
            #expect(outcome.end == .exited(0), "\(outcome.message)")
            try await site.backUp(ending: [counter.child, document.child, sequencer.child])
            try site.flip("1003".utf8, to: "log-damaged")
            return try StreamExpectation("old", actions: path, results: outcome.output)
        }

        // MARK: Faults

        /// Kills and restarts processes, and starts the late worker, while the streams run.
        private func suffer(
            _ first: RunningSequencer, _ workers: inout [RunningWorker], _ real: RealStreams,
            _ keyed: KeyedStream
        ) async throws {
            var sequencer = first
            var late: Task<RunningWorker, any Error>?
            for round in 0..<Self.rounds {
                async let isUnderWay: Void = keyed.begin(
                    part: round, of: Self.rounds + 1, at: first.address, within: limit)
                try await real.begin(part: round)
                try await isUnderWay
                // The keyed dispatcher is killed before the sequencer, or while no sequencer is running.
                if round % 2 == 0 { try await keyed.kill() }
                let index = round % Self.names.count
                for child in [sequencer.child, workers[index].child] { child.signal(SIGKILL) }
                for child in [sequencer.child, workers[index].child] { _ = try await child.end() }
                if round % 2 == 1 { try await keyed.kill() }
                // The worker starts before the sequencer has restarted.
                let name = Self.names[index]
                let returning = Task { try await start(name, first) }
                if round == Self.rounds / 2 {
                    late = Task { try await start(Self.late, first) }
                }
                sequencer = try await site.sequencer(data: "log-damaged", at: sequencer)
                workers[index] = try await returning.value
            }
            try await real.begin(part: Self.rounds)
            if let late { workers.append(try await late.value) }
        }

        private func expect(_ report: LogReaders.Report, _ damage: ClosedRange<UInt64>) throws {
            print(
                """
                everything: \(Self.readerCount) readers, \(report.readings) readings, \
                \(report.fetches) fetches, \(report.welcomes) welcomes
                """)
            let met = try #require(report.damage)
            #expect(met.first.rawValue == damage.lowerBound)
            #expect(met.last.rawValue == damage.upperBound)
            #expect(met.message.contains("\(damage.lowerBound)"), "\(met.message)")
            #expect(report.readings >= Self.readerCount)
        }
    }
#endif
