import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// Something about one store that the sequencer writes into the log when it is asked for it.
struct StoreDecision: Sendable {
    /// What came of it.
    struct Outcome: Sendable {
        /// The number of the entry that created the store.
        let life: SequenceNumber
        /// The number of the entry that says it, or a later one.
        let sequence: SequenceNumber

        func json(_ store: StoreName) -> JSONValue {
            [
                "life": .number(life), "sequence": .number(sequence),
                "store": .string(store.description),
            ]
        }
    }

    private let connection: Connection
    private let store: StoreName

    init(_ connection: Connection, about store: StoreName) {
        self.connection = connection
        self.store = store
    }

    /// Asks for it, waits until it is in the log, and closes the connection.
    ///
    /// - Parameters:
    ///   - environment: Says how long to wait.
    ///   - goal: Names the entry; it is given the store's present life, so that asking twice decides
    ///     about no other one.
    /// - Returns: What was decided.
    /// - Throws: Why it was not, or that the wait was ended.
    func wait(
        _ environment: CommandEnvironment,
        for goal: @escaping @Sendable (SequenceNumber) -> Wait.Goal
    ) async throws(CommandFailure) -> Outcome {
        let outcome: Outcome
        do throws(CommandFailure) {
            outcome = try await environment.interruption.cancelling {
                () async throws(CommandFailure) in try await ask(for: goal)
            }
        } catch {
            await connection.close()
            throw error
        }
        await connection.close()
        return outcome
    }

    private func ask(
        for goal: @Sendable (SequenceNumber) -> Wait.Goal
    ) async throws(CommandFailure) -> Outcome {
        let stores = try await connection.status().stores
        guard let life = stores.first(where: { $0.store == store })?.life else {
            let known = stores.prefix(20).map(\.store.description).joined(separator: ", ")
            throw CommandFailure(
                .notFound, code: "\(RejectionCode.unknownTarget)",
                "There is no store \(store); there are: \(stores.isEmpty ? "none yet" : known)")
        }
        do throws(NodeError) {
            let sequence = try await connection.core.wait(
                for: goal(life), patience: connection.timeout)
            return Outcome(life: life, sequence: sequence)
        } catch {
            throw CommandFailure(error)
        }
    }
}
