import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
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

    static let description = Command(
        "observe", summary: "Show the state of a store, as each node has it.",
        discussion: """
            Shows one line for each live node that hosts the store: the node, the number of the \
            last entry that concerned the store there, and the state in canonical JSON. Nodes \
            with the same number have the same bytes. With --follow each node is followed \
            separately. If a state changes faster than it can be shown, the newest state is \
            shown.
            """,
        parameters: [
            DropCommand.store, node, follow, path,
        ] + Connection.parameters,
        examples: [
            .init("Compare a counter in all nodes", "conflux observe counter"),
            .init(
                "Follow a part of a document in one node",
                "conflux observe document/prefs --node alpha --path /theme --follow --json"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let (store, path) = (arguments[DropCommand.store], arguments[path])
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
