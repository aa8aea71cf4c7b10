import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// A request that the sequencer writes an entry about one store into the log.
struct StoreDecision: Sendable {
    /// The decision.
    struct Outcome: Sendable {
        /// The number of the entry that created the store.
        let life: SequenceNumber
        /// The number of the entry with the decision, or a later one.
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

    /// Asks for the entry, waits until it is in the log, and closes the connection.
    ///
    /// - Parameters:
    ///   - environment: The command's environment.
    ///   - goal: Names the wanted entry for the store's current life. A repeated request can't affect a later life.
    /// - Returns: The decision.
    /// - Throws: ``CommandFailure`` if it was not decided, or the wait was ended.
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
            if error.code == .timedOut, case .upgraded = goal(life), await isUnhosted {
                throw CommandFailure(
                    .timedOut, code: "notHosted",
                    """
                    No live node hosts \(store), and no program opened it within \(connection.timeout), so nothing \
                    has changed. Start a program with the newer version while this command waits, and \
                    give it time with --timeout.
                    """)
            }
            throw CommandFailure(error)
        }
    }

    /// Whether the sequencer says that nobody hosts the store. If it says nothing, the wait that failed says why.
    private var isUnhosted: Bool {
        get async {
            let status = try? await connection.status()
            return status?.stores.first { $0.store == store }?.hosts == 0
        }
    }
}
