import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux drop`: ends a store, in every process.
enum DropCommand {
    private static let store = Operand(
        "STORE", parse: .storeName,
        summary: "The store: state/instance, or a state's name for its shared store.")

    static let description = Command(
        "drop", summary: "End a store, in every process.",
        discussion: """
            Every node that hosts the store says so and hosts it no longer; its entries stay in the \
            log. Whoever opens the name afterwards begins another store, from its first state. To \
            undo it is not possible.
            """,
        parameters: [store] + Connection.parameters,
        examples: [.init("End a document", "conflux drop document/old")])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let name = environment.arguments[store]
        let connection = try await Connection.open(environment, as: .observer)
        let dropped: (life: SequenceNumber, sequence: SequenceNumber)
        do throws(CommandFailure) {
            dropped = try await environment.interruption.cancelling {
                () async throws(CommandFailure) in try await drop(name, by: connection)
            }
        } catch {
            await connection.close()
            throw error
        }
        await connection.close()
        if environment.isJSON {
            environment.output.print(
                [
                    "life": .number(dropped.life), "sequence": .number(dropped.sequence),
                    "store": .string(name.description),
                ])
        } else {
            environment.output.add("dropped: \(name), which entry \(dropped.life) created")
        }
        return .success
    }

    /// A life is named, so that asking twice drops no other one.
    private static func drop(
        _ name: StoreName, by connection: Connection
    ) async throws(CommandFailure) -> (life: SequenceNumber, sequence: SequenceNumber) {
        let stores = try await connection.status().stores
        guard let life = stores.first(where: { $0.store == name })?.life else {
            let known = stores.prefix(20).map(\.store.description).joined(separator: ", ")
            throw CommandFailure(
                .notFound, code: "\(RejectionCode.unknownTarget)",
                "There is no store \(name); there are: \(stores.isEmpty ? "none yet" : known)")
        }
        do throws(NodeError) {
            let sequence = try await connection.core.wait(
                for: .dropped(name, life: life), patience: connection.timeout)
            return (life, sequence)
        } catch {
            throw CommandFailure(error)
        }
    }
}
