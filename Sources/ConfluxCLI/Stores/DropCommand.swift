import ConfluxArguments
import ConfluxNode
import ConfluxWorker

/// `conflux drop`: ends a store in every process.
enum DropCommand {
    static let store = Operand(
        "STORE", parse: .storeName,
        summary: "The store: state/instance, or a state's name for its shared store.")

    private static let yes = Flag(
        "--yes", summary: "Do not ask. Without a terminal, the command never asks.")

    static let description = Command(
        "drop", summary: "End a store, in every process.",
        discussion: """
            Every node that hosts the store reports the drop and stops hosting it. Its entries \
            stay in the log. Opening the name afterwards creates a new store, in its first state. \
            You can't undo a drop.
            """,
        parameters: [store, yes] + Connection.parameters,
        examples: [.init("End a document", "conflux drop document/old")])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let name = environment.arguments[store]
        if !environment.arguments[yes], !environment.isJSON {
            try await Confirmation.require(
                "End \(name) in every process? You can't undo it.", environment.interruption)
        }
        return try await StoreDecision.make(
            about: name, environment, for: { .dropped(name, life: $0) },
            { "dropped: \(name), which entry \($0) created" })
    }
}
