import Conflux
import ConfluxArguments
import ConfluxBuiltins
import ConfluxNode
@testable import ConfluxProtocol
import ConfluxSequencer
import ConfluxWorker
import Testing

@testable import ConfluxCLI

/// Retention, freezing, thawing and skipping, and reports of replicas that differ.
@Suite struct `What is decided about a log and its stores` {
    // MARK: Retention

    private func configuration(_ options: String...) throws -> SequencerConfiguration {
        var configuration = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        guard
            case .run(let invocation) = try Tool.program.parse(["sequencer", "--memory"] + options)
        else { return configuration }
        SequencerCommand.keep(invocation, &configuration)
        return configuration
    }

    @Test func `a sequencer keeps 256 MiB by default`() throws {
        let configuration = try configuration()
        #expect(configuration.retention == Retention())
        #expect(configuration.retention.bytesMax == 256 << 20)
        #expect(configuration.checkpointBytes == 64 << 20)
    }

    @Test func `a smaller log has more frequent checkpoints, so that entries can be discarded`()
        throws
    {
        let small = try configuration("--keep-bytes", "4MiB")
        #expect(small.retention.bytesMax == 4 << 20 && small.checkpointBytes == 1 << 20)
        let large = try configuration("--keep-bytes", "1TiB")
        #expect(large.retention.bytesMax == 1 << 40 && large.checkpointBytes == 64 << 20)
    }

    @Test func `entries and age are further bounds`() throws {
        let retention = try configuration("--keep-entries", "500", "--keep-for", "36h").retention
        #expect(retention.entriesMax == 500)
        #expect(retention.ageMax == .seconds(36 * 3_600))
    }

    @Test(arguments: [
        ["--keep-bytes", "1023KiB"], ["--keep-bytes", "2PB"], ["--keep-entries", "0"],
        ["--keep-for", "10ms"], ["--keep-for", "week"],
    ])
    func `contradictory retention is a usage error`(options: [String]) {
        #expect(throws: UsageError.self) {
            try Tool.program.parse(["sequencer", "--memory"] + options)
        }
    }

    @Test func `retention is set by options`() throws {
        let options = ["--keep-bytes", "8MiB", "--keep-for", "7d"]
        guard
            case .run(let invocation) = try Tool.program.parse(["sequencer", "--memory"] + options)
        else { return }
        var configuration = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        SequencerCommand.keep(invocation, &configuration)
        #expect(configuration.retention.bytesMax == 8 << 20)
        #expect(configuration.retention.ageMax == .seconds(7 * 86_400))
    }

    // MARK: Freezing and skipping

    @Test(.timeLimit(.minutes(5)))
    func `a store is frozen, shown as such, and thawed`() async throws {
        try await `A tour of the commands`.withNodes("alpha") { connect in
            let frozen = try await Run.tool(["freeze", "counter"] + connect)
            #expect(frozen.exitCode == .success)
            let line = try JSONValue(json: try #require(frozen.lines.first))
            #expect(line["/store"]?.string == "counter/shared")
            #expect(line["/life"]?.integer != nil && line["/sequence"]?.integer != nil)
            let dispatch = try await Run.tool(
                ["dispatch", "counter/shared", "increment"] + connect)
            #expect(dispatch.exitCode == .rejected)
            #expect(
                dispatch.lines.first?.hasPrefix(#"{"error":{"code":"frozen","message":"#) == true)
            let status = try await Run.tool(["status"] + connect)
            #expect(status.lines.first?.contains(#"{"frozen":true,"hosts":1,"#) == true)
            let text = try await Run.tool(["status", "--connect", try #require(connect.last)])
            #expect(
                text.lines.contains { $0.hasPrefix("counter/shared") && $0.hasSuffix("frozen") })
            #expect(try await Run.tool(["freeze", "counter"] + connect).exitCode == .success)
            #expect(try await Run.tool(["thaw", "counter"] + connect).exitCode == .success)
            let again = try await Run.tool(["dispatch", "counter/shared", "increment"] + connect)
            #expect(again.exitCode == .success)
            let log = try await Run.tool(["log", "--target", "counter/shared"] + connect)
            let kinds = log.lines.compactMap { try? JSONValue(json: $0)["/kind"]?.string }
            #expect(kinds == ["created", "frozen", "thawed", "action"])
            #expect(try await Run.tool(["thaw", "nothing"] + connect).exitCode == .notFound)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `applied entries, events and missing entries can't be skipped`()
        async throws
    {
        try await `A tour of the commands`.withNodes("alpha") { connect in
            let run = try await Run.tool(
                ["dispatch", "counter/*", "increment", "--wait", "applied"] + connect)
            let line = try #require(run.lines.first)
            let sequence = try #require(JSONValue(json: line)["/sequence"]?.integer)
            #expect(
                try await Run.tool(["log", "skip", "\(sequence)"] + connect).exitCode == .rejected)
            #expect(try await Run.tool(["log", "skip", "1"] + connect).exitCode == .rejected)
            #expect(try await Run.tool(["log", "skip", "1000"] + connect).exitCode == .notFound)
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: ["freeze", "drop"])
    func `an action that no store took is not reported as applied`(decision: String) async throws {
        try await `A tour of the commands`.withNodes("alpha") { connect in
            #expect(try await Run.tool([decision, "counter"] + connect).exitCode == .success)
            let run = try await Run.tool(
                ["dispatch", "counter/*", "increment", "--wait", "applied"] + connect)
            #expect(run.exitCode == .concernedNobody)
            let failure = try JSONValue(json: try #require(run.lines.first))
            #expect(failure["/error/code"]?.string == "concernedNobody")
            #expect(failure["/receipt/sequence"]?.integer != nil)
        }
    }

    @Test func `skip is a subcommand of log, and both have help`() throws {
        for words in [["log", "--help"], ["log", "skip", "--help"], ["freeze", "--help"]] {
            guard case .show(let text) = try Tool.program.parse(words) else {
                Issue.record("\(words) shows nothing")
                continue
            }
            #expect(text.contains("--json") && text.contains("Examples:"))
        }
        #expect(throws: UsageError.self) { try Tool.program.parse(["log", "skip"]) }
        let mistake = #expect(throws: UsageError.self) {
            try Tool.program.parse(["log", "skp", "3"])
        }
        #expect(mistake?.suggestion == "skip")
        let other = #expect(throws: UsageError.self) { try Tool.program.parse(["freez", "x"]) }
        #expect(other?.suggestion == "freeze")
    }

    // MARK: Replicas that differ

    private static let alpha = Incarnation(2)

    private func divergence(
        _ nodes: [UInt64], isMajority: Bool = true, path: String? = nil
    ) -> DivergenceStatus {
        DivergenceStatus(
            lastEqual: SequenceNumber(4), firstUnequal: SequenceNumber(90),
            nodes: nodes.map { Incarnation($0) }, isMajority: isMajority, path: path)
    }

    @Test func `a differing node is named, with the interval and the place`() throws {
        let store = try #require(StoreName("cart/7"))
        let words = DivergenceText.words(
            store, divergence([2, 3], path: "/lines/0"), [Self.alpha: try #require(Name("alpha"))])
        #expect(
            words == """
                cart/7 diverged between entries 4 and 90, first at /lines/0: alpha, node 3 \
                differed from the majority, and load its state
                """)
        #expect(
            DivergenceText.words(store, divergence([2, 3], isMajority: false), [:]).hasSuffix(
                "90: no state has a majority among node 2, node 3, so no replica reloads"))
    }

    @Test(arguments: [
        (ExitCode.timedOut, ExitCode.terminated), (.interrupted, .terminated),
        (.unknownOutcome, .unknownOutcome),
    ])
    func `an interruption explains a failure, but not an unknown outcome`(
        failure: ExitCode, wanted: ExitCode
    ) async throws {
        guard case .run(let invocation) = try Tool.program.parse(["sequencer", "--memory"]) else {
            return
        }
        for lifetime in [CommandEnvironment.Lifetime.limited, .following, .service] {
            let interruption = Interruption()
            interruption.fire(.terminated)
            let environment = CommandEnvironment(
                invocation, isJSON: true, lifetime: lifetime, interruption: interruption)
            let exitCode = await environment.run { _ throws(CommandFailure) in
                throw CommandFailure(failure, "The command failed.")
            }
            #expect(exitCode == (lifetime == .limited ? wanted : .success))
        }
    }

    @Test func `a sequencer reports a divergence once, and again when something is new`()
        async throws
    {
        let sequencer = try Sequencer.start(
            SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory))
        guard case .run(let invocation) = try Tool.program.parse(["sequencer", "--memory"]) else {
            return
        }
        let file = try TemporaryFile()
        var telling = SequencerTelling(
            sequencer, isInsecure: false, http: nil,
            CommandEnvironment(
                invocation, isJSON: true, lifetime: .service, interruption: Interruption(),
                output: file.descriptor))
        let store = try #require(StoreName("cart/7"))
        func tell(_ status: DivergenceStatus) { telling.tell(.note(.diverged(store, status))) }
        telling.tell(.note(.joined(Self.alpha, name: Name("alpha"))))
        tell(divergence([2]))
        tell(divergence([2]))
        tell(divergence([2], path: "/a"))
        tell(divergence([2], path: "/b"))
        tell(divergence([2, 3], path: "/b"))
        telling.tell(.note(.converged(store, at: SequenceNumber(100))))
        tell(divergence([2]))
        await sequencer.stop()
        let told = file.lines.filter { $0.contains(#""event":"diverged""#) }
            .map { $0.replacing(/"time":"[^"]+"/, with: #""time":"…""#) }
        #expect(told.count == 4)
        #expect(
            told.first == """
                {"event":"diverged","firstUnequal":90,"lastEqual":4,"level":"error","majority":true,\
                "nodes":[{"incarnation":2,"name":"alpha"}],"store":"cart/7","time":"…"}
                """)
        #expect(told[1].hasSuffix(#""path":"/a","store":"cart/7","time":"…"}"#))
    }
}
