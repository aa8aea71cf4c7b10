import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux freeze` and `conflux thaw`: no action reaches a store, until it is thawed.
enum FreezeCommand {
    private static let store = Operand(
        "STORE", parse: .storeName,
        summary: "The store: state/instance, or a state's name for its shared store.")

    static let freeze = Command(
        "freeze", summary: "Have no action reach a store, in every process.",
        discussion: """
            The store stays open where it is, and can be observed. What is dispatched to it is \
            rejected (frozen); an action for its whole state reaches the state's other stores, and \
            is not made up for. conflux thaw has it go on, and conflux status shows what is frozen. \
            The sequencer itself freezes a store whose replicas did not agree for a long time, and \
            one that nobody hosts and that much comes for, which is thawed when it is opened.
            """,
        parameters: [store] + Connection.parameters,
        examples: [
            .init("Keep a document as it is", "conflux freeze document/prefs"),
            .init("Have it go on", "conflux thaw document/prefs"),
        ])

    static let thaw = Command(
        "thaw", summary: "Have a frozen store go on.",
        discussion: """
            Actions that are ordered from here on reach the store again, in every process; what was \
            ordered for its whole state while it was frozen does not.
            """,
        parameters: [store] + Connection.parameters,
        examples: [
            .init("Have a document go on", "conflux thaw document/prefs"),
            .init("Show which stores are frozen", "conflux status"),
        ])

    /// Freezes a store, or thaws it.
    static func run(
        _ environment: CommandEnvironment, isFrozen: Bool
    ) async throws(CommandFailure) -> ExitCode {
        let name = environment.arguments[store]
        let connection = try await Connection.open(environment, as: .observer)
        let outcome = try await StoreDecision(connection, about: name).wait(environment) { life in
            .frozen(name, life: life, isFrozen)
        }
        if environment.isJSON {
            environment.output.print(outcome.json(name))
        } else {
            environment.output.add("\(isFrozen ? "frozen" : "thawed"): \(name)")
        }
        return .success
    }
}
