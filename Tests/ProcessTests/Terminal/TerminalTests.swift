import Foundation
import Testing

extension ProcessTests {
    @Suite struct TerminalTests {
        private func dropped(_ answer: String?, _ options: String...) async throws -> (
            code: Int32, shown: String, stores: Bool
        ) {
            let site = try Site()
            let sequencer = try await site.sequencer()
            _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
            let terminal = try Terminal(
                ["drop", "counter", "--connect", sequencer.address] + options)
            if let answer {
                try terminal.wait(for: "[y/N]")
                try terminal.type(answer)
            }
            let (code, shown) = try terminal.end()
            let status = try await site.run("status", "--json", "--connect", sequencer.address)
            return (code, shown, status.output.joined().contains("counter/shared"))
        }

        @Test func `drop asks first, and a yes drops the store`() async throws {
            let run = try await dropped("y\n")
            #expect(run.code == 0 && !run.stores)
            #expect(run.shown.contains("End counter/shared in every process?"))
        }

        @Test(arguments: ["\n", "no\n", "\u{4}"])
        func `any other answer drops nothing`(answer: String) async throws {
            let run = try await dropped(answer)
            #expect(run.code == 130 && run.stores)
            #expect(run.shown.contains("Nothing was changed."))
        }

        @Test func `drop does not ask with --yes`() async throws {
            let run = try await dropped(nil, "--yes")
            #expect(run.code == 0 && !run.stores && !run.shown.contains("[y/N]"))
        }

        @Test func `SIGINT ends the question`() async throws {
            let site = try Site()
            let sequencer = try await site.sequencer()
            let terminal = try Terminal(["drop", "counter", "--connect", sequencer.address])
            try terminal.wait(for: "[y/N]")
            terminal.interrupt()
            #expect(try terminal.end().code == 130)
        }

        @Test(arguments: [true, false])
        func `top shows the nodes, and restores the terminal`(isByKey: Bool) async throws {
            let site = try Site()
            let sequencer = try await site.sequencer()
            _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
            let terminal = try Terminal(["top", "--connect", sequencer.address])
            try terminal.wait(for: "created: counter/shared")
            try terminal.wait(for: "alpha")
            try terminal.wait(for: "\u{1B}[1mNODE")
            if isByKey { try terminal.type("q") } else { terminal.interrupt() }
            let (code, shown) = try terminal.end()
            #expect(code == 0)
            #expect(shown.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"), "\(shown.suffix(200))")
        }

        @Test func `top needs a terminal, and says what to use in a pipe`() async throws {
            let site = try Site()
            let sequencer = try await site.sequencer()
            let run = try await site.run("top", "--json", "--connect", sequencer.address)
            #expect(run.message.contains("conflux status --watch"))
            #expect(run.end == .exited(64))
        }

        @Test func `a watched status stays in place until SIGINT`() async throws {
            let site = try Site()
            let sequencer = try await site.sequencer()
            let terminal = try Terminal(["status", "--watch", "--connect", sequencer.address])
            try terminal.wait(for: "sequencer at")
            // Three lines, and the second status goes to the first of them.
            try terminal.wait(for: "\u{1B}[3Asequencer at")
            terminal.interrupt()
            let (code, shown) = try terminal.end()
            #expect(code == 0)
            #expect(!shown.contains("\u{1B}[H"), "the lines above would be overwritten")
        }

        @Test func `a watched status never scrolls, however low the terminal is`() async throws {
            let site = try Site()
            let sequencer = try await site.sequencer()
            _ = try await site.worker("alpha", of: sequencer)
            let terminal = try Terminal(
                ["status", "--watch", "--connect", sequencer.address], rows: 6)
            // The cursor stands on the sixth line.
            try terminal.wait(for: "\u{1B}[5Asequencer at")
            try terminal.wait(for: "more lines")
            terminal.interrupt()
            let (code, shown) = try terminal.end()
            #expect(code == 0 && !shown.contains("STORE"), "\(shown)")
        }

        @Test func `a watched status in a pipe is plain lines`() async throws {
            let site = try Site()
            let sequencer = try await site.sequencer()
            let child = try site.start(["status", "--watch", "--connect", sequencer.address])
            var count = 0
            _ = try await child.output.first { line in
                if line.hasPrefix("sequencer at") { count += 1 }
                return count == 2
            }
            child.signal(SIGINT)
            let outcome = try await Tool.outcome(of: child)
            #expect(outcome.end == .exited(0))
            #expect(!outcome.output.contains { $0.contains("\u{1B}") })
        }
    }
}
