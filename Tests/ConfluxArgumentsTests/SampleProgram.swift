import ConfluxArguments
import Testing

/// A program that uses everything that a description can have.
enum Sample {
    enum Durability: String, CaseIterable, Sendable {
        case fsync
        case os
    }

    static let bind = Option(
        "--bind", valueName: "ENDPOINT", default: "tcp://127.0.0.1:7400", parse: .text,
        summary: "Where nodes connect.")
    static let data = Option(
        "--data", parse: .folder, summary: "The folder that holds the log.")
    static let memory = Flag(
        "--memory", summary: "Keep the log in memory, and lose it when the process ends.")
    static let durability = Option<Durability>(
        "--durability", default: .fsync, parse: .choice, summary: "When a commit counts as kept.")
    static let beat = Option(
        "--beat-interval", default: .milliseconds(100), parse: .duration(),
        summary: "How often an idle sequencer says that it lives.")

    static let connect = Option(
        required: "--connect", valueName: "ADDRESS", parse: .text, summary: "The sequencer.")
    static let stores = Option(
        repeated: "--store", valueName: "STORE", parse: .text, summary: "A store to host.")
    static let json = Flag("--json", summary: "Print one JSON value per line.")

    static let target = Operand("TARGET", parse: .text, summary: "A state or a store.")
    static let action = Operand(optional: "ACTION", parse: .text, summary: "What should happen.")
    static let file = Option("--file", parse: .file, summary: "Read actions from a file.")
    static let payloadMax = Option(
        "--payload-max", default: 1 << 20, parse: .byteSize(in: 1...(1 << 30)),
        summary: "The most that an action may have.")

    static let from = Option(
        "--from", valueName: "SEQ", parse: .integer(in: 1...UInt64.max), summary: "The first entry."
    )
    static let number = Operand(
        "SEQ", parse: .integer(in: 1...UInt64.max), summary: "The entry to skip.")
    static let words = Operand(rest: "WORD", atLeastOne: true, parse: .text, summary: "Words.")

    static let program = Program(
        Command(
            "conflux", summary: "Shared state, kept consistent.",
            subcommands: [
                Command(
                    "sequencer", summary: "Decide the order of actions.",
                    discussion: """
                        One process owns the end of the log. It takes batches from nodes, makes
                        them durable together, and publishes them in one order to everyone.

                        It ends cleanly on SIGINT.
                        """,
                    parameters: [bind, data, memory, durability, beat],
                    groups: [.exactlyOne(data, memory)],
                    examples: [
                        .init("Serve a durable log", "conflux sequencer --data /var/lib/conflux")
                    ]),
                Command(
                    "worker", summary: "Host stores.", parameters: [connect, stores, json]),
                Command(
                    "dispatch", summary: "Dispatch an action.",
                    parameters: [target, action, file, payloadMax],
                    groups: [.atMostOne(action, file)]),
                Command(
                    "log", summary: "Show the log.", parameters: [from, json],
                    subcommands: [
                        Command("skip", summary: "Skip an entry.", parameters: [number])
                    ], runsAlone: true),
                Command("echo", summary: "Say words.", parameters: [words]),
            ]), version: "0.1.0", conventions: conventions)

    private static let conventions = {
        var all = Conventions()
        all.letters = [
            "--bind": "b", "--from": "n", "--json": "j", "--memory": "m", "--store": "s",
        ]
        all.variables = [
            "--bind": "CONFLUX_BIND", "--connect": "CONFLUX_CONNECT", "--json": "CONFLUX_JSON",
            "--beat-interval": "CONFLUX_BEAT",
        ]
        all.exitCodes = [.init("0", "done"), .init("64", "the line can't be understood")]
        all.environment = [.init("NO_COLOR", "Without colours.")]
        all.files = [.init("~/.conflux", "What is kept.")]
        return all
    }()
}

/// Parses a line that must run a command.
func invoke(_ line: String..., environment: [String: String] = [:]) throws -> Invocation {
    switch try Sample.program.parse(line, environment: environment) {
    case .run(let invocation): return invocation
    case .show(let text):
        Issue.record("it shows a text: \(text)")
        throw UnexpectedOutcome()
    }
}

/// Parses a line that must show a text.
func show(_ line: String..., columns: Int = 80) throws -> String {
    switch try Sample.program.parse(line, columns: columns) {
    case .show(let text): return text
    case .run(let invocation):
        Issue.record("it runs \(invocation.path)")
        throw UnexpectedOutcome()
    }
}

/// Parses a line that must have a mistake.
func mistake(_ line: String..., environment: [String: String] = [:]) throws -> UsageError {
    try #require(throws: UsageError.self) {
        try Sample.program.parse(line, environment: environment)
    }
}

struct UnexpectedOutcome: Error {}
