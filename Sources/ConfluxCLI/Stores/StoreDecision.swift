import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// A request that the sequencer writes an entry about one store into the log.
struct StoreDecision: Sendable {
    private let connection: Connection
    private let store: StoreName

    /// Asks for the entry, waits until it is in the log, and shows that.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - environment: The command's environment.
    ///   - goal: Names the wanted entry for the store's current life. A repeated request can't affect a later life.
    ///   - text: What people read, given the number of the entry that created the store.
    /// - Returns: How the command ends.
    /// - Throws: ``CommandFailure`` if it was not decided, or the wait was ended.
    static func make(
        about store: StoreName, _ environment: CommandEnvironment,
        for goal: @escaping @Sendable (SequenceNumber) -> Wait.Goal,
        _ text: (SequenceNumber) -> String
    ) async throws(CommandFailure) -> ExitCode {
        let (life, sequence) = try await Connection.use(environment) {
            connection async throws(CommandFailure) in
            try await StoreDecision(connection: connection, store: store).ask(for: goal)
        }
        environment.show(["life": life, "sequence": sequence, "store": store], text(life))
        return .success
    }

    private func ask(
        for goal: @Sendable (SequenceNumber) -> Wait.Goal
    ) async throws(CommandFailure) -> (life: SequenceNumber, sequence: SequenceNumber) {
        let stores = try await connection.status().stores
        guard let life = stores.first(where: { $0.store == store })?.life else {
            let names = stores.map(\.store.description)
            let known = names.isEmpty ? "none yet" : names.prefix(20).joined(separator: ", ")
            let meant = nearest(to: "\(store)", in: names).map { " Did you mean '\($0)'?" } ?? ""
            throw CommandFailure(
                .notFound, code: "\(RejectionCode.unknownTarget)",
                "There is no store \(store); there are: \(known).\(meant)")
        }
        do throws(NodeError) {
            let patience = connection.timeout
            return (life, try await connection.core.wait(for: goal(life), patience: patience))
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
