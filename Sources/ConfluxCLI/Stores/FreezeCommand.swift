import ConfluxArguments
import ConfluxNode
import ConfluxWorker

/// `conflux freeze` and `conflux thaw`: a frozen store receives no action until it is thawed.
enum FreezeCommand {
    static let freeze = Command(
        "freeze", summary: "Block all actions for a store, in every process.",
        discussion: """
            The store stays open, and you can observe it. An action for the store is rejected \
            (frozen). An action for its whole state reaches the state's other stores only, and is \
            not delivered later. conflux thaw ends it, and conflux status shows which stores are \
            frozen. The sequencer itself freezes a store whose replicas did not agree for a long \
            time. It also freezes one that nobody hosts and that receives much, and thaws it \
            when it is opened.
            """,
        parameters: [DropCommand.store] + Connection.parameters,
        examples: [
            .init("Keep a document as it is", "conflux freeze document/prefs"),
            .init("Thaw it", "conflux thaw document/prefs"),
        ])

    static let thaw = Command(
        "thaw", summary: "Let actions reach a frozen store again.",
        discussion: """
            Actions that are ordered from now on reach the store again, in every process. \
            Actions for its whole state that were ordered while it was frozen do not.
            """,
        parameters: [DropCommand.store] + Connection.parameters,
        examples: [
            .init("Thaw a document", "conflux thaw document/prefs"),
            .init("Show which stores are frozen", "conflux status"),
        ])

    /// Freezes or thaws a store.
    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let name = environment.arguments[DropCommand.store]
        let isFrozen = environment.arguments.command == freeze.name
        return try await StoreDecision.make(
            about: name, environment, for: { .frozen(name, life: $0, isFrozen) },
            { _ in "\(isFrozen ? "frozen" : "thawed"): \(name)" })
    }
}
