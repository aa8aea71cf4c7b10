import Testing

extension ProcessTests {
    /// The main use, as a whole: two dispatchers at the same time, four workers, and a log on disk.
    struct RealInputTests {
        @Test func `four workers have the same document after two streams`() async throws {
            let lineCount = try RealStreams.lineCount()
            try await withSeed { seed in
                print("real input: \(lineCount) lines; to repeat: CONFLUX_SEED=\(seed)")
                try await withSite { site in
                    try await run(on: site, lineCount: lineCount, seed: seed)
                }
            }
        }

        private func run(on site: Site, lineCount: Int, seed: UInt64) async throws {
            let limit = RealStreams.limit(lineCount)
            let sequencer = try await site.sequencer(data: "log")
            for name in ["w1", "w2", "w3"] { _ = try await site.worker(name, of: sequencer) }
            var generator = ActionGenerator(seed: seed)
            let streams = try RealStreams(
                lineCount, on: site, at: sequencer.address, by: &generator)

            // The fourth worker joins while both streams are running.
            try await streams.begin(part: 0)
            _ = try await site.worker("w4", of: sequencer)

            let reference = try await site.expectOneHistory(
                of: try await streams.expectations(), at: sequencer.address,
                in: ["w1", "w2", "w3", "w4"], within: limit)
            print("real input: \(reference.applied) applied, \(reference.refused) refused")
            #expect(reference.refused > 0 && reference.applied > lineCount / 2)
        }
    }
}
