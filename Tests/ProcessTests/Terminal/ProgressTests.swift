import Foundation
import Testing

extension ProcessTests {
    @Suite struct ProgressTests {
        @Test func `a file's progress has its total and the time left, but only on a terminal`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                let lines = String(repeating: "increment\n", count: 15_000)
                let file = try site.write(lines, to: "actions")
                let words = ["dispatch", "counter", "--file", file, "--connect", sequencer.address]
                let shown = try Terminal(words).end(within: .seconds(120))
                #expect(shown.code == 0)
                let line = try #require(
                    shown.shown.split(separator: "\u{1B}[K").first { $0.contains(" left") })
                #expect(line.contains(/[0-9]+ actions, [0-9]+ %, [0-9]+\/s, .* left/), "\(line)")
                let dumb = try Terminal(words, variables: ["TERM": "dumb"]).end(
                    within: .seconds(120))
                #expect(dumb.code == 0 && !dumb.shown.contains(" left"))
                let piped = try await Tool.outcome(of: try Tool.start(words))
                #expect(piped.end == .exited(0) && piped.errors.isEmpty)
            }
        }

        @Test func `a copy's progress has its total and the time left, but only on a terminal`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer(data: "log")
                _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                sequencer.child.signal(SIGTERM)
                #expect(try await sequencer.child.end() == .exited(0))
                let (log, copy) = (site.path("log"), site.path("copy"))
                let runs = [
                    ["backup", copy, "--data", log],
                    ["restore", copy, "--data", site.path("back")],
                    ["log", "--verify", copy],
                ]
                for words in runs {
                    let shown = try Terminal(words).end()
                    #expect(shown.code == 0)
                    let lines = shown.shown.split(separator: "\u{1B}[K")
                    #expect(
                        lines.contains {
                            $0.contains(/[0-9]+ of [0-9]+ entries, 100 %, [0-9]+\/s, 0s left/)
                        }, "\(shown.shown)")
                    let copies = lines.contains {
                        $0.contains(/[0-9]+ KiB of [0-9]+ KiB, [0-9]+ %, [0-9]+ [KM]iB\/s, .* left/)
                    }
                    #expect(copies == (words[0] != "log"), "\(shown.shown)")
                }
                let piped = try await site.run("backup", site.path("other"), "--data", log)
                #expect(piped.end == .exited(0) && piped.errors.isEmpty)
            }
        }
    }
}
