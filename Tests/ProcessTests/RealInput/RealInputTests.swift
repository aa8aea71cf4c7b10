import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// The main job, as a whole: two dispatchers at once, four workers, a log on disk.
    struct RealInputTests {
        @Test func `four workers have the same document after two streams`() async throws {
            let lineCount = Int(try setting("CONFLUX_REAL_INPUT_LINES") ?? 2_000)
            let seed = try setting("CONFLUX_SEED") ?? UInt64.random(in: 0...UInt64.max)
            print("real input: \(lineCount) lines; to repeat: CONFLUX_SEED=\(seed)")
            try await withSite { site in
                do {
                    try await run(on: site, lineCount: lineCount, seed: seed)
                } catch {
                    throw Failure("CONFLUX_SEED=\(seed): \(error)")
                }
            }
        }

        private func run(on site: Site, lineCount: Int, seed: UInt64) async throws {
            // Much more than a slow machine takes, and still no hang.
            let limit = Duration.seconds(60 + lineCount / 100)
            let (fileOne, fileTwo) = (site.path("one.ndjson"), site.path("two.ndjson"))
            var generator = ActionGenerator(seed: seed)
            try generator.write(lineCount / 2, to: fileOne)
            try generator.write(lineCount - lineCount / 2, to: fileTwo)

            let sequencer = try await site.sequencer(data: "log")
            for name in ["w1", "w2", "w3"] { _ = try await site.worker(name, of: sequencer) }
            let common = ["dispatch", "document", "--json", "--connect", sequencer.address]
            let one = try site.start(common + ["--file", fileOne])
            let two = try site.start(common + ["-"], input: .file(fileTwo))

            // The fourth comes while both are at work.
            _ = try await one.output.line(lineCount / 8, within: limit)
            _ = try await site.worker("w4", of: sequencer)

            let outcomeOne = try await Tool.outcome(of: one, within: limit)
            let outcomeTwo = try await Tool.outcome(of: two, within: limit)
            for outcome in [outcomeOne, outcomeTwo] {
                #expect(outcome.end == .exited(0), "\(outcome.title): \(outcome.message)")
                #expect(outcome.errors.isEmpty, "\(outcome.title): \(outcome.message)")
            }
            let streams = [
                try StreamExpectation("one", actions: fileOne, results: outcomeOne.output),
                try StreamExpectation("two", actions: fileTwo, results: outcomeTwo.output),
            ]
            let reference = try await site.expectOneHistory(
                of: streams, at: sequencer.address, in: ["w1", "w2", "w3", "w4"], within: limit)
            print("real input: \(reference.applied) applied, \(reference.refused) refused")
            #expect(reference.refused > 0 && reference.applied > lineCount / 2)
        }

        private func setting(_ name: String) throws -> UInt64? {
            guard let text = ProcessInfo.processInfo.environment[name] else { return nil }
            guard let value = UInt64(text) else { throw Failure("\(name) is no number: \(text)") }
            return value
        }
    }
}
