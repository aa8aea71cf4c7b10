import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux observe`: shows the state of a store in every node that hosts it.
enum ObserveCommand {
    private static let store = Operand(
        "STORE", parse: .storeName,
        summary: "The store: state/instance, or a state's name for its shared store.")
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
            store, node, follow, path,
        ] + Connection.parameters,
        examples: [
            .init("Compare a counter in all nodes", "conflux observe counter"),
            .init(
                "Follow a part of a document in one node",
                "conflux observe document/prefs --node alpha --path /theme --follow --json"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let connection = try await Connection.open(environment, as: .observer)
        let observation = StoreObservation(
            environment, connection, arguments[store], path: arguments[path])
        do throws(CommandFailure) {
            let node = arguments[node]
            let isFollowing = arguments[follow]
            try await environment.interruption.cancelling { () async throws(CommandFailure) in
                if isFollowing {
                    try await observation.follow(node)
                } else {
                    try await observation.show(node)
                }
            }
        } catch {
            await connection.close()
            throw error
        }
        await connection.close()
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
                throw InvalidValue("'\(text)' is not a JSON pointer: \(error.message)")
            }
        }
    }
}
