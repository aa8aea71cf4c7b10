import Conflux
import ConfluxVocabulary

/// The past of a replicated store.
///
/// ```swift
/// let then = try await stock.state(at: 4711)          // as it was behind entry 4711 of the log
/// let other = try await stock.state(at: 4711, without: 4700)
/// for change in try await stock.changes(from: 4700, to: 4711) { print(change) }
/// ```
///
/// The state is made anew from the log: from the last snapshot before the number, or from the store's creation, and the
/// entries after it, with this program's code. So the number must not be below what the log keeps
/// (`PastError.Code.belowFloor` names the lowest one). The store itself is not touched, and nobody is notified.
extension Store where State: ReplicatedState {
    /// The state that the store had behind an entry of the log.
    ///
    /// - Parameters:
    ///   - sequence: The number of the entry, whether it concerned this store or not.
    ///   - without: The number of an action for this store. The state is as if it had never been ordered: the state's
    ///     check decides anew about each later action. Whatever else followed from it stays as it is in the log: timers,
    ///     actions that programs dispatched because of it, its part in other stores, and what the sequencer decided,
    ///     such as a condition. nil to leave out nothing.
    ///   - limit: How long it may take; nil for no limit.
    /// - Returns: The state. Another schema version's is migrated, as at a late join.
    /// - Throws: ``PastError``.
    /// - Complexity: O(*n*) in the entries of the log since the snapshot.
    public func state(
        at sequence: SequenceNumber, without: SequenceNumber? = nil, within limit: Duration? = nil
    ) async throws(PastError) -> State.Snapshot {
        guard let found = try await pastStates(at: [sequence], without: without, limit).first
        else { preconditionFailure("a state for each number") }
        do {
            return try State.snapshot(from: found.json, version: Int(found.version))
        } catch {
            throw PastError(
                .unreadableVersion,
                "The state at \(sequence) can't be read in schema version \(State.schemaVersion): \(error)"
            )
        }
    }

    /// The places at which the states that the store had at two numbers differ.
    ///
    /// - Parameters:
    ///   - former: The lower number.
    ///   - later: The higher number.
    ///   - without: The number of an action for this store that is left out of both, as for `state(at:without:within:)`.
    ///   - limit: How long it may take; nil for no limit.
    /// - Returns: The changes from the former to the later state, by their places in the canonical JSON.
    /// - Throws: ``PastError``.
    /// - Precondition: `former` is not above `later`.
    public func changes(
        from former: SequenceNumber, to later: SequenceNumber, without: SequenceNumber? = nil,
        within limit: Duration? = nil
    ) async throws(PastError) -> [JSONChange] {
        precondition(former <= later, "the changes from \(former) to an earlier number, \(later)")
        let states = try await pastStates(at: [former, later], without: without, limit)
        do throws(CodingFailure) {
            let values = try states.map { (state) throws(CodingFailure) in
                try JSONValue(json: state.json)
            }
            return values[0].changes(to: values[1])
        } catch {
            throw .unreadable(later, error)
        }
    }

    private func pastStates(
        at marks: [SequenceNumber], without: SequenceNumber?, _ limit: Duration?
    ) async throws(PastError) -> [PastState] {
        guard let route = core.orderedRoute as? OutboxRoute<State>, let past = route.past,
            case .store(let name) = route.target
        else {
            throw PastError(
                .unknownStore,
                "This store is not replicated by a node, so no log has its past. A Recorder keeps one."
            )
        }
        return try await past.states(
            of: .replicated(State.self), name, at: marks, without: without, within: limit)
    }
}
