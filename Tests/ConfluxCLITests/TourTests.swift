import ConfluxBuiltins
import ConfluxNode
import ConfluxProtocol
import ConfluxSequencer
import ConfluxWorker
import Testing

@testable import ConfluxCLI

/// Runs the commands against a sequencer and nodes in this process.
@Suite(.timeLimit(.minutes(5))) struct `A tour of the commands` {
    /// A sequencer, and nodes that host a counter and a document.
    static func withNodes(
        _ names: String..., body: (_ connect: [String]) async throws -> Void
    ) async throws {
        let sequencer = try Sequencer.start(
            SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory))
        var nodes: [(Node, CounterStore, ModelStore<Document>)] = []
        for name in names {
            let node = try await Node.connect(
                to: sequencer.address, settings: NodeSettings(name: Name(name)), scope: Scope())
            nodes.append(
                (
                    node, try await node.store(CounterState.self),
                    try await node.store(Document.self, named: "prefs")
                ))
        }
        try await body(["--json", "--connect", sequencer.address])
        for (node, _, _) in nodes { await node.close() }
        await sequencer.stop()
    }

    /// Waits until nodes have applied the last dispatched action.
    private static func awaitApplied(
        _ run: Run, in store: String, by nodes: [String], _ connect: [String]
    ) async throws {
        let line = try JSONValue(json: try #require(run.lines.last))
        let sequence = try #require(line["/sequence"]?.integer?.converted(to: UInt64.self))
        let core = try NodeCore(
            address: try #require(connect.last), settings: NodeSettings(), role: .observer,
            scope: Scope())
        try await core.connected(within: .seconds(5))
        for node in nodes {
            let question = Question.Body.observe(
                try #require(StoreName(store)), node: Name(node),
                after: SequenceNumber(sequence - 1))
            _ = try await core.ask(question, patience: .seconds(20))
        }
        core.leave(timeout: .zero)
        await core.ended()
    }

    @Test func `a state's name alone means one store in each command`()
        async throws
    {
        try await Self.withNodes("alpha") { connect in
            func dispatched(to target: String) async throws -> String {
                let run = try await Run.tool(
                    ["dispatch", target, #"{"set":{"at":"/a","value":1}}"#, "--wait", "applied"]
                        + connect)
                return "\(run.exitCode) \(run.lines.joined())"
            }
            // There is a document/prefs, but no document/shared.
            for words in [["observe", "document"], ["drop", "document"], ["freeze", "document"]] {
                let run = try await Run.tool(words + connect)
                #expect(run.exitCode == .notFound, "\(words)")
            }
            let one = try await dispatched(to: "document")
            #expect(one.hasPrefix("rejected") && one.contains("document/shared"), "\(one)")
            let every = try await dispatched(to: "document/*")
            #expect(every.hasPrefix("success") && every.contains(#""target":"document/*""#))
            let log = try await Run.tool(["log", "--target", "document"] + connect)
            #expect(log.lines.count == 1 && log.lines[0].contains(#""target":"document/*""#))
            let more = try await Run.tool(["log", "--target", "document/*"] + connect)
            #expect(more.lines.contains { $0.contains(#""store":"document/prefs""#) })
        }
    }

    @Test func `a stream's results are in the order of its lines`() async throws {
        try await Self.withNodes("alpha") { connect in
            let input = try TemporaryFile(
                """
                {"increment":{}}

                {nonsense
                {"add":{"amount":9223372036854775807}}
                decrement
                """)
            let run = try await Run.tool(
                ["dispatch", "counter/*", "--file", input.path, "--wait", "applied"] + connect)
            try #require(run.lines.count == 4)
            #expect(run.lines[0].hasPrefix(#"{"epoch":"#))
            #expect(run.lines[0].contains(#""target":"counter/*","timestamp":"#))
            #expect(run.lines[1].hasPrefix(#"{"error":{"code":"invalidAction","message":"#))
            #expect(run.lines[1].hasSuffix(#"},"line":3}"#))
            #expect(run.lines[2].hasPrefix(#"{"error":{"code":"refused","message":"#))
            #expect(run.lines[2].contains(#"},"line":4,"receipt":{"epoch":"#))
            #expect(run.lines[3].hasPrefix(#"{"epoch":"#))
            // The exit code is that of the first line that failed.
            #expect(run.exitCode == .invalidInput)
        }
    }

    @Test func `thousands of lines are in flight at the same time, and all are counted`()
        async throws
    {
        try await Self.withNodes("alpha") { connect in
            let input = try TemporaryFile(
                String(repeating: "{\"increment\":{}}\n", count: 20_000))
            let run = try await Run.tool(["dispatch", "counter/*", "--file", input.path] + connect)
            #expect(run.exitCode == .success)
            #expect(run.lines.count == 20_000)
            let last = try await Run.tool(
                ["dispatch", "counter/*", "increment", "--wait", "applied"] + connect)
            #expect(last.exitCode == .success)
            let state = try await Run.tool(["observe", "counter"] + connect)
            #expect(state.lines.first?.contains(#""state":{"count":20001}"#) == true)
        }
    }

    @Test func `a state is shown exactly as each node has it`() async throws {
        try await Self.withNodes("beta", "alpha") { connect in
            let action = #"{"merge":{"at":"","value":{"b":[1,2.50],"a":{"é":true}}}}"#
            let dispatched = try await Run.tool(
                ["dispatch", "document/prefs", action, "--wait", "applied"] + connect)
            #expect(dispatched.exitCode == .success)
            try await Self.awaitApplied(
                dispatched, in: "document/prefs", by: ["alpha", "beta"], connect)
            let one = try await Run.tool(
                ["observe", "document/prefs", "--node", "beta", "--path", "/a"] + connect)
            #expect(
                one.lines.first?.contains(#""state":{"é":true},"store":"document/prefs"}"#) == true)
            let none = try await Run.tool(["observe", "document/prefs", "--path", "/x"] + connect)
            #expect(none.exitCode == .notFound)
            let all = try await Run.tool(["observe", "document/prefs"] + connect)
            #expect(
                all.lines.map { $0.prefix(16) }
                    == [#"{"node":"alpha","#, #"{"node":"beta","s"#].map { $0.prefix(16) })
        }
    }

    @Test func `a store that nobody hosts has its own exit code, and the known names are printed`()
        async throws
    {
        try await Self.withNodes("alpha") { connect in
            #expect(try await Run.tool(["observe", "room/1"] + connect).exitCode == .notFound)
            #expect(
                try await Run.tool(["observe", "counter", "--node", "omega"] + connect).exitCode
                    == .notFound)
            let run = try await Run.tool(["dispatch", "room/1", "{}"] + connect)
            #expect(run.exitCode == .rejected)
            #expect(run.lines.first?.contains(#""code":"unknownTarget""#) == true)
            #expect(run.lines.first?.contains("counter") == true)
        }
    }

    @Test func `the log has each entry once, from wherever it is read`() async throws {
        try await Self.withNodes("alpha") { connect in
            let input = try TemporaryFile(String(repeating: "increment\n", count: 50))
            let sent = try await Run.tool(
                ["dispatch", "counter/*", "--file", input.path] + connect)
            #expect(sent.exitCode == .success)
            let all = try await Run.tool(["log"] + connect).lines
            let numbers = try all.map { line in
                try #require(JSONValue(json: line)[JSONPointer("/sequence")]?.integer)
            }
            try #require(!numbers.isEmpty)
            #expect(numbers == (1...numbers.count).map { JSONInteger($0) })
            // This also works in the middle of a commit.
            for from in 1...all.count {
                let part = try await Run.tool(
                    ["log", "--from", "\(from)", "--to", "\(from + 2)"] + connect)
                #expect(part.lines == Array(all[(from - 1)..<min(all.count, from + 2)]))
            }
            let actions = try await Run.tool(["log", "--target", "counter/shared"] + connect).lines
            #expect(actions.count == 51)
            #expect(actions[0].contains(#""initial":{"count":0},"kind":"created""#))
            #expect(actions[1].hasPrefix(#"{"action":{"increment":{}},"epoch":"#))
            #expect(actions[1].contains(#","kind":"action","origin":""#))
        }
    }

    @Test func `a command to an address where nobody answers ends in time`() async throws {
        let run = try await Run.tool([
            "status", "--connect", "tcp://127.0.0.1:1", "--timeout", "50ms",
        ])
        #expect(run.exitCode == .unreachable)
        #expect(run.lines == [])
    }

    @Test func `conflux log --follow ends with success when told to`() async throws {
        try await Self.withNodes("alpha") { connect in
            let interruption = Interruption()
            interruption.fire(.interrupted)
            let run = try await Run.tool(
                ["log", "--follow"] + connect, interruption: interruption)
            #expect(run.exitCode == .interrupted || run.exitCode == .success)
        }
    }

    @Test func `a store is dropped, and another one is created with its name`() async throws {
        try await Self.withNodes("alpha") { connect in
            _ = try await Run.tool(["dispatch", "counter/*", "increment"] + connect)
            let run = try await Run.tool(["drop", "counter"] + connect)
            #expect(run.exitCode == .success)
            let line = try JSONValue(json: try #require(run.lines.first))
            #expect(line["/store"]?.string == "counter/shared")
            let life = try #require(line["/life"]?.integer?.converted(to: UInt64.self))
            let log = try await Run.tool(["log", "--target", "counter/shared"] + connect)
            #expect(
                log.lines.last?.contains(#""kind":"dropped","life":\#(life),"sequence":"#)
                    == true)
            let status = try await Run.tool(["status"] + connect)
            #expect(status.lines.first?.contains(#""store":"counter/shared""#) == false)
            let again = try await Run.tool(["drop", "counter"] + connect)
            #expect(again.exitCode == .notFound)
            let observed = try await Run.tool(["observe", "counter"] + connect)
            #expect(observed.exitCode == .notFound)
        }
    }
}
