import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// The state of a store that a check migrates.
struct SeenState: Sendable {
    /// The last entry in it.
    let sequence: SequenceNumber
    let bytes: Bytes
    /// The schema version whose form it has.
    let version: UInt32
    /// The schema version in force from it on.
    let inForce: StateVersion
}

/// Asks for the states of stores, and changes nothing.
extension Connection {
    /// The newest state of a store: of the nodes that host it, or the newest snapshot in the log if none does.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - status: Which nodes there are.
    /// - Returns: The state, or why nobody gives it.
    /// - Throws: ``CommandFailure`` if the connection has ended.
    func state(
        of store: StoreStatus, _ status: SequencerStatus
    ) async throws(CommandFailure) -> Result<SeenState, CommandFailure> {
        // A stopped replica may have the form of an older version.
        let stopped = Set(store.stopped.map(\.node))
        let former = Set(status.sessions.filter { stopped.contains($0.incarnation) }.map(\.name))
        let (answers, _) = try failing { () throws(NodeError) in
            try core.answers(
                to: .observe(store.store, node: nil, after: .zero), patience: timeout)
        }
        var newest: SeenState?
        var failure: CommandFailure?
        for await answer in answers {
            switch answer.body {
            case .state(_, let sequence, let bytes) where !former.contains(answer.node):
                guard newest.map({ sequence > $0.sequence }) ?? true else { continue }
                newest = SeenState(
                    sequence: sequence, bytes: bytes, version: store.schemaVersion,
                    inForce: StateVersion(
                        base: sequence, schemaVersion: store.schemaVersion, digest: nil))
            case .failed(.notHosted, _): break
            case .failed(let reason, let message):
                failure = CommandFailure(unanswered: reason, message)
            default: break
            }
        }
        if Task.isCancelled {
            throw CommandFailure(
                .interrupted, "Interrupted before all stores were checked. Run the command again.")
        }
        if let newest { return .success(newest) }
        if let failure { return .failure(failure) }
        return try await snapshot(of: store.store)
    }

    private func snapshot(
        of store: StoreName
    ) async throws(CommandFailure) -> Result<SeenState, CommandFailure> {
        var former: SnapshotOffer?
        while let start = try await start(of: store) {
            let snapshot: Snapshot
            do throws(CommandFailure) {
                snapshot = try await load(start).snapshot
            } catch {
                guard error.code == CommandFailure.snapshotGone else { throw error }
                // A newer one may have taken its place meanwhile.
                guard former != start.offer else { return .failure(error) }
                former = start.offer
                continue
            }
            return .success(
                SeenState(
                    sequence: snapshot.sequence, bytes: snapshot.state.bytes,
                    version: snapshot.schemaVersion,
                    inForce: StateVersion(
                        base: snapshot.sequence, schemaVersion: start.version.version,
                        digest: start.version.migrated)))
        }
        return .failure(
            CommandFailure(
                .notFound, code: "notHosted",
                "\(store) was dropped meanwhile. Run the command again."))
    }
}
