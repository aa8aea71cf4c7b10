import ConfluxArguments
import ConfluxNode
import ConfluxWorker

/// `conflux observe`: shows the state of a store in every node that hosts it.
enum ObserveCommand {
    private static let node = Option<Name?>(
        "--node", parse: .nodeName.completing(.asked("nodes")), summary: "Ask only this node.")
    static let follow = Flag(
        "--follow", summary: "Keep showing each new state until SIGINT.")
    private static let path = Option<JSONPointer>(
        "--path", valueName: "POINTER", default: .root, parse: .jsonPointer,
        summary: "Show a part of the state: a JSON pointer such as /theme/name.")

    private static let at = Option<SequenceNumber?>(
        "--at", valueName: "SEQ", parse: .sequence,
        summary: "Show the state as it was behind this entry of the log, made anew from the log.")
    private static let without = Option<SequenceNumber?>(
        "--without", valueName: "SEQ", parse: .sequence,
        summary: "With --at: as if this action had never been ordered.")
    private static let diff = Option<SequenceNumber?>(
        "--diff", valueName: "SEQ", parse: .sequence,
        summary: "With --at: show what differs from the state at this earlier entry.")

    static let description = Command(
        "observe", summary: "Show the state of a store, as each node has it, or as it was.",
        discussion: """
            Shows one line for each live node that hosts the store: the node, the number of the \
            last entry that concerned the store there, and the state in canonical JSON. Nodes \
            with the same number have the same bytes. With --follow each node is followed \
            separately. If a state changes faster than it can be shown, the newest state is \
            shown.

            With --at, no node is asked: the command makes the state from the last snapshot \
            before the entry, or from the store's creation, and the entries of the log after it. \
            So it needs the state's code, which it has for \(BuiltinStates.names); a program of \
            yours uses Store.state(at:). Of other states it shows the newest snapshot up to the \
            entry, and says so. A number below what the log keeps is refused with the \
            lowest one. With --without, the state's check decides anew about each later action; \
            timers, other stores and the actions that programs dispatched stay as they were.
            """,
        parameters: [
            DropCommand.store, node, follow, path, at, without, diff,
        ] + Connection.parameters,
        groups: [
            .atMostOne(at, node), .atMostOne(at, follow), .atMostOne(diff, path),
        ],
        examples: [
            .init("Compare a counter in all nodes", "conflux observe counter"),
            .init(
                "Follow a part of a document in one node",
                "conflux observe document/prefs --node alpha --path /theme --follow --json"),
            .init("Show a counter as it was", "conflux observe counter --at 4711"),
            .init(
                "Show what an action made different",
                "conflux observe counter --at 4711 --diff 4710"),
        ])

    /// Checks the options, before the command runs.
    static func validate(_ arguments: Invocation) throws(UsageError) {
        guard let at = arguments[at] else {
            if arguments[without] != nil { throw arguments.usageError("--without needs --at") }
            if arguments[diff] != nil { throw arguments.usageError("--diff needs --at") }
            return
        }
        if let diff = arguments[diff], diff > at {
            throw arguments.usageError("--diff \(diff) is after --at \(at)")
        }
    }

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let (store, path) = (arguments[DropCommand.store], arguments[path])
        if let at = arguments[at] {
            try await PastObservation(environment, store, path: path).show(
                at: at, without: arguments[without], comparedWith: arguments[diff])
            return .success
        }
        let (node, isFollowing) = (arguments[node], arguments[follow])
        let questions = OpenQuestions()
        try await Connection.use(environment, watch: { questions.note($0, environment) }) {
            connection async throws(CommandFailure) in
            let observation = StoreObservation(
                environment, connection, store, path: path, questions)
            if isFollowing {
                try await observation.follow(node)
            } else {
                try await observation.show(node)
            }
        }
        return .success
    }
}

extension ValueParser where Value == JSONPointer {
    /// A place in JSON.
    static var jsonPointer: ValueParser<JSONPointer> {
        ValueParser("POINTER", describe: { "\"\($0)\"" }) { (text: String) throws(InvalidValue) in
            do throws(CodingFailure) {
                return try JSONPointer(text)
            } catch {
                throw InvalidValue(
                    "'\(text)' is not a JSON pointer: \(error.message), such as /theme/name")
            }
        }
    }
}
