import Conflux
import ConfluxVocabulary
import Synchronization

/// Actions that are to be committed in several processes alike.
struct Work<State: ReplicatedState>: Codable {
    struct Step: Codable {
        let action: State.Action
        let sequence: UInt64
        /// Nanoseconds since the start of 1970.
        let timestamp: Int64
    }

    var snapshot: State.Snapshot?
    var steps: [Step]

    /// Chooses the random numbers of the contexts.
    private static var seed: UInt64 { 0x5EED }

    /// Steps of actions without numbers and times of their own.
    static func steps(of actions: [State.Action]) -> [Step] {
        actions.enumerated().map { index, action in
            Step(
                action: action, sequence: UInt64(index) + 1,
                timestamp: 1_700_000_000_000_000_000 + Int64(index) * 1_000_000)
        }
    }

    /// Steps of the actions in a log.
    ///
    /// - Throws: ``CheckFailure`` for a line that is none of a log's.
    static func steps(log: String, target: String) throws(CheckFailure) -> [Step] {
        var steps: [Step] = []
        for (index, text) in log.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        where !text.allSatisfy(\.isWhitespace) {
            do {
                let line = try CanonicalDecoder().decode(LogLine.self, from: Array(text.utf8))
                guard line.kind ?? "action" == "action", line.target ?? target == target else {
                    continue
                }
                guard let json = line.action else {
                    throw CheckFailure(message: "it has no member `action`")
                }
                let action = try ActionCoder<State.Action>()
                    .decode(Array(json.description.utf8)[...], as: .json)
                let number = line.sequence ?? (steps.last?.sequence ?? 0) + 1
                let time =
                    line.timestamp ?? (steps.last?.timestamp ?? 1_700_000_000_000_000_000) + 1
                steps.append(Step(action: action, sequence: number, timestamp: time))
            } catch {
                let reason = (error as? CheckFailure)?.message ?? String(describing: error)
                throw CheckFailure(message: "line \(index + 1): \(reason)")
            }
        }
        return steps
    }

    // MARK: Committing

    /// Commits the actions one after the other.
    ///
    /// - Parameter isRestored: Whether each is committed in a new store, loaded from the snapshot of the
    ///   one before.
    /// - Returns: What the state is before the first and after each.
    /// - Throws: ``CheckFailure`` when a state can't be encoded, or decoded.
    func history(isRestored: Bool) throws(CheckFailure) -> StateHistory {
        var store = makeStore()
        if let snapshot { restore(snapshot, to: store) }
        var history = StateHistory()
        history.append(try json(of: store), isRefused: false)
        for (index, step) in steps.enumerated() {
            if isRestored {
                let bytes = history.last
                store = makeStore()
                do {
                    let snapshot = try CanonicalDecoder().decode(State.Snapshot.self, from: bytes)
                    restore(snapshot, to: store)
                } catch {
                    throw CheckFailure(
                        message: "its snapshot before action \(index + 1) can't be read: \(error)")
                }
            }
            let isRefused = commit(step, to: store)
            history.append(try json(of: store), isRefused: isRefused)
        }
        return history
    }

    private func makeStore() -> Store<State> {
        // In a scope of its own: nothing else reaches it.
        Scope().run { Store(state: State(), mutations: State.mutations, executor: .immediate) }
    }

    private func restore(_ snapshot: State.Snapshot, to store: Store<State>) {
        store.core.restore(snapshot, at: .zero) { _ in }
    }

    private func commit(_ step: Step, to store: Store<State>) -> Bool {
        let context = ActionContext(
            sequence: SequenceNumber(step.sequence), timestamp: Timestamp(step.timestamp),
            seed: Self.seed)
        let isRefused = Atomic(false)
        store.core.deliver([OrderedAction(action: step.action, context: context)]) { report in
            isRefused.store(!report.refusals.isEmpty, ordering: .relaxed)
        }
        return isRefused.load(ordering: .relaxed)
    }

    private func json(of store: Store<State>) throws(CheckFailure) -> [UInt8] {
        // Nobody else uses the store, so that this thread is in its lane.
        do {
            return try CanonicalEncoder().encode(store.computed.state.snapshot)
        } catch {
            throw CheckFailure(message: "its state can't be encoded: \(error)")
        }
    }
}

/// What is read of a line of a log.
private struct LogLine: Decodable {
    var kind: String?
    var target: String?
    var action: JSONValue?
    var sequence: UInt64?
    /// Nanoseconds since the start of 1970.
    var timestamp: Int64?
}
