import ConfluxArguments
import ConfluxBuiltins
import ConfluxNode
import ConfluxProtocol
import ConfluxSequencer
import ConfluxWorker
import Testing

@testable import ConfluxCLI

/// `dispatch --resume` and `dispatch --timeout`, against a sequencer in this process.
@Suite(.timeLimit(.minutes(5))) struct `A dispatch that is run again` {
    private static func withCounter(
        _ body: (_ connect: [String], _ sequencer: Sequencer) async throws -> Void
    ) async throws {
        let sequencer = try Sequencer.start(
            SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory))
        let node = try await Node.connect(
            to: sequencer.address, settings: NodeSettings(name: Name("alpha")), scope: Scope())
        let store = try await node.store(CounterState.self)
        do {
            try await body(["--json", "--connect", sequencer.address], sequencer)
        } catch {
            await sequencer.stop()
            throw error
        }
        _ = store
        await node.close()
        await sequencer.stop()
    }

    private static func count(_ connect: [String]) async throws -> JSONInteger? {
        let run = try await Run.tool(["observe", "counter"] + connect)
        return try JSONValue(json: try #require(run.lines.first))["/state/count"]?.integer
    }

    @Test func `finished lines are resumed, and appended ones are dispatched`() async throws {
        try await Self.withCounter { connect, _ in
            let lines = "increment\n\n{\"add\":{\"amount\":10}}\n{nonsense\n"
            let first = try TemporaryFile(lines)
            let arguments = ["--resume", "k", "--wait", "applied"] + connect
            let one = try await Run.tool(
                ["dispatch", "counter/*", "--file", first.path] + arguments)
            #expect(one.exitCode == .invalidInput)
            try #require(one.lines.count == 3)
            #expect(one.lines[0].contains(#""sequence":"#))
            #expect(one.lines[2].contains(#""code":"invalidAction""#))

            let again = try await Run.tool(
                ["dispatch", "counter/*", "--file", first.path] + arguments)
            #expect(again.exitCode == .success)
            #expect(
                again.lines == [1, 3, 4].map { #"{"line":\#($0),"resumed":true}"# })

            let longer = try TemporaryFile(lines + "{\"add\":{\"amount\":100}}\n")
            let more = try await Run.tool(
                ["dispatch", "counter/*", "--file", longer.path] + arguments)
            #expect(more.exitCode == .success)
            #expect(more.lines.dropLast() == again.lines[...])
            #expect(more.lines.last?.contains(#""sequence":"#) == true)
            #expect(try await Self.count(connect) == 111)

            // A run with another key is another run.
            let other = try await Run.tool(
                ["dispatch", "counter/*", "--file", first.path, "--resume", "other"] + connect)
            #expect(other.exitCode == .invalidInput)
            let last = try await Run.tool(
                ["dispatch", "counter/*", "increment", "--wait", "applied"] + connect)
            #expect(last.exitCode == .success)
            #expect(try await Self.count(connect) == 123)
        }
    }

    @Test
    func `outcomes that an earlier run did not print are reported, and dispatching continues`()
        async throws
    {
        try await Self.withCounter { connect, sequencer in
            let former = try NodeCore(
                address: sequencer.address, settings: NodeSettings(), role: .member, scope: Scope(),
                key: SessionKey("k"))
            try await former.connected(within: .seconds(20))
            let target = BatchTarget(
                target: try #require(Target("counter/*")), schemaVersion: 1, coding: .json)
            var sequences: [UInt64] = []
            for _ in 0..<3 {
                let handle = former.submit(target, Array(#"{"increment":{}}"#.utf8))
                sequences.append(try await handle.receipt().sequence.rawValue)
            }
            former.leave(timeout: .zero)
            await former.ended()
            // Three were judged. A batch that extends beyond them would lose the lines after them.
            let file = try TemporaryFile(String(repeating: "increment\n", count: 200))
            let run = try await Run.tool(
                [
                    "dispatch", "counter/*", "--file", file.path, "--resume", "k", "--wait",
                    "applied",
                ]
                    + connect)
            #expect(run.exitCode == .success)
            let found = try run.lines.map {
                try JSONValue(json: $0)["/sequence"]?.integer?.converted(to: UInt64.self)
            }
            #expect(found.prefix(3).compactMap { $0 } == sequences)
            #expect(found.count == 200 && !found.contains(nil))
            #expect(try await Self.count(connect) == 200)
        }
    }

    @Test func `an action above the limit uses up its line's counter`() async throws {
        try await Self.withCounter { connect, _ in
            let long = #"{"x":""# + String(repeating: "x", count: 300) + #""}"#
            let file = try TemporaryFile("1\n\(long)\n3\n")
            let arguments =
                ["dispatch", "counter/*", "--file", file.path, "--resume", "k"] + connect
            // The tool does not know this state. The log knows it, since it is bridged.
            let words = arguments.map { $0 == "counter/*" ? "plain/*" : $0 }
            let run = try await Run.tool(words + ["--payload-max", "100"])
            try #require(run.lines.count == 3)
            #expect(run.lines[0].contains("unknownTarget"))
            #expect(run.lines[1].contains("invalidAction") && run.lines[1].contains(#""line":2"#))
            #expect(run.lines[2].contains("unknownTarget") && run.lines[2].contains(#""line":3"#))
            let again = try await Run.tool(words + ["--payload-max", "100"])
            #expect(again.exitCode == .success && again.lines.count == 3)
        }
    }

    @Test func `a run whose key another process has is refused`() async throws {
        try await Self.withCounter { connect, sequencer in
            let holder = try NodeCore(
                address: sequencer.address, settings: NodeSettings(), role: .member, scope: Scope(),
                key: SessionKey("k"))
            try await holder.connected(within: .seconds(20))
            let file = try TemporaryFile("increment\n")
            let run = try await Run.tool(
                ["dispatch", "counter/*", "--file", file.path, "--resume", "k"] + connect)
            #expect(run.exitCode == .nodeRefused)
            #expect(run.lines == [])
            holder.leave(timeout: .zero)
            await holder.ended()
            let again = try await Run.tool(
                ["dispatch", "counter/*", "--file", file.path, "--resume", "k"] + connect)
            #expect(again.exitCode == .success)
        }
    }

    @Test(arguments: [
        ["increment", "--resume", "k"], ["-", "--resume", ""],
        ["-", "--resume", String(repeating: "x", count: 257)],
    ])
    func `a key needs a stream, and has 1 to 256 bytes`(words: [String]) async throws {
        await #expect(throws: UsageError.self) {
            _ = try await Run.tool(["dispatch", "counter/*"] + words)
        }
    }
}
