import ConfluxVocabulary
import Synchronization

/// Keeps the past values of a store, and brings them back.
///
/// ```swift
/// let recorder = Recorder(todo)
/// todo.dispatch(.add("milk"))
/// try recorder.back()        // as before
/// try recorder.forward()     // with milk
/// ```
///
/// The first step is the value that the store had when the recorder was made. Each value that became
/// visible since is a further step. A chain of changes (``Transaction``) is one step. A commit that was
/// refused, or that left the value unchanged, is not a step; values are compared by `==`, or by their
/// encoding if they are not `Equatable`. A commit after a step back replaces the steps ahead. At its
/// capacity the recorder drops the oldest value.
///
/// A value is restored in the store's lane, after all actions dispatched before: before the call returns if
/// the store is on `.immediate` and idle, otherwise soon after, on the store's executor. Until then
/// ``position`` does not change. A step is refused if it is impossible from the present position, and
/// skipped if commits or other steps have made it impossible when its turn comes. A restored value notifies observers
/// like any change; middleware does not see it.
///
/// It may be used on any thread, keeps the store alive, and records until it is disposed or released. A store
/// that a node replicates can be recorded, but not brought back: the log decides its value.
public final class Recorder<State: ValueHolder>: Disposable, Sendable
where State.Value: Codable {
    /// A value in the past.
    public struct Step: Codable, Sendable {
        /// What the store had.
        public let value: State.Value
        /// The action that led there, as it describes itself; nil for the first value.
        public let action: String?
        /// When that was committed.
        public let timestamp: Timestamp
    }

    /// What is exported and imported as a whole.
    private struct Tape: Codable {
        var format = 1
        var position: Int
        var steps: [Step]
    }

    private struct Record: Sendable {
        var steps: [Step]
        var position = 0
        /// *Use*: what the commit under way consists of. A chain reports all its actions before the first one
        /// is committed.
        var actions: [RecorderTap.Action] = []
        /// Whether the change under way is a step of this recorder.
        var isStepping = false
        var registrations: [any Disposable]? = []
    }

    private let store: Store<State>
    private let capacity: Int
    private let record: Mutex<Record>

    /// Begins to record.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - capacity: How many values to keep, at least 2.
    public init(_ store: Store<State>, capacity: Int = 1_024) {
        precondition(capacity >= 2, "a recorder of \(capacity) values has nothing to go back to")
        self.store = store
        self.capacity = capacity
        let timestamp = WallClock.now
        let state = store.computed.state._state
        record = Mutex(
            Record(steps: [Step(value: state.content, action: nil, timestamp: timestamp)]))
        let tap = RecorderTap { [weak self] action in
            self?.record.withLock { record in
                if let action { record.actions.append(action) } else { record.actions = [] }
            }
        }
        let looks = LateDisposable()
        let tapping = store.core.scope.middleware.register(tap, for: store.core)
        record.withLock { $0.registrations = [looks, tapping] }
        // What was committed before this belongs to the first value.
        store.core.run { [weak self] in
            let first = Step(value: state.held, action: nil, timestamp: timestamp)
            self?.record.withLock { $0.steps = [first] }
            looks.become(state.add(Observation()) { [weak self] in self?.note($0.held) })
        }
    }

    deinit {
        dispose()
    }

    /// Whether the recording has ended.
    public var isDisposed: Bool { record.withLock { $0.registrations == nil } }

    /// Ends the recording. What was recorded stays, and can be brought back.
    public func dispose() {
        for registration in record.withLock({ $0.registrations.take() }) ?? [] {
            registration.dispose()
        }
    }

    /// The recorded values, oldest first.
    public var steps: [Step] { record.withLock { $0.steps } }

    /// The index in ``steps`` of the value that the store has. It moves when a step is made.
    public var position: Int { record.withLock { $0.position } }

    /// Brings back the value before the present one, in the store's lane.
    ///
    /// - Throws: ``StoreError``: `noSuchStep` at the oldest one, `replicated`.
    public func back() throws(StoreError) {
        try go { $0 - 1 }
    }

    /// Brings back the value after the present one, in the store's lane.
    ///
    /// - Throws: ``StoreError``: `noSuchStep` at the newest one, `replicated`.
    public func forward() throws(StoreError) {
        try go { $0 + 1 }
    }

    /// Brings back a value, in the store's lane.
    ///
    /// - Parameter position: Its index in ``steps`` when the step is made: commits before it may have put
    ///   another value there.
    /// - Throws: ``StoreError``: `noSuchStep`, `replicated`.
    public func jump(to position: Int) throws(StoreError) {
        try go { _ in position }
    }

    /// All that is kept, as JSON in UTF-8. It is encoded on this thread.
    ///
    /// - Returns: What ``import(_:)`` takes.
    /// - Throws: Why a value can't be encoded.
    public func export() throws(CodingFailure) -> [UInt8] {
        let record = record.withLock { $0 }
        return try CanonicalCoder().encode(
            Tape(position: record.position, steps: record.steps))
    }

    /// Replaces the recording by one that a recorder of the same state has exported, and brings back the value
    /// at its position, in the store's lane.
    ///
    /// - Parameter bytes: What ``export()`` returned.
    /// - Throws: `CodingFailure` if it can't be read; ``StoreError``: `unreadable` if it makes no sense,
    ///   `replicated`. Then nothing has changed.
    public func `import`(_ bytes: some Sequence<UInt8>) throws {
        let tape = try CanonicalCoder().decode(Tape.self, from: bytes)
        guard tape.format == 1, tape.steps.indices.contains(tape.position) else {
            throw StoreError(
                .unreadable,
                """
                The recording is of format \(tape.format), at value \(tape.position) of \
                \(tape.steps.count): expected format 1, at one of its values. Give it what \
                `export()` has returned.
                """)
        }
        let surplus = max(0, tape.steps.count - capacity)
        let kept = min(surplus, tape.position)
        try checkFree()
        let steps = Array(tape.steps[kept...].prefix(capacity))
        step { record in
            (record.steps, record.position) = (steps, tape.position - kept)
            return true
        }
    }

    // MARK: Steps

    private func go(_ target: @escaping @Sendable (_ position: Int) -> Int) throws(StoreError) {
        try checkFree()
        let (position, count) = record.withLock { ($0.position, $0.steps.count) }
        guard (0..<count).contains(target(position)) else {
            throw StoreError(
                .noSuchStep,
                """
                There is no value \(target(position)): \(count) are kept, from 0 on, and the store is at \
                \(position). Choose one of those (`steps`).
                """)
        }
        step { record in
            // Commits may have come before the step.
            let next = target(record.position)
            guard record.steps.indices.contains(next) else { return false }
            record.position = next
            return true
        }
    }

    private func checkFree() throws(StoreError) {
        guard store.core.isRouted else { return }
        throw StoreError(
            .replicated,
            """
            The store is replicated by a node, so that its value is decided by the log: it can be \
            recorded, but not brought back. Dispatch an action that sets the value.
            """)
    }

    /// Makes a step: in the lane, as soon as no lock pauses the flow.
    ///
    /// - Parameter move: Returns whether there is such a step in its turn. If not, nothing changes.
    private func step(_ move: @escaping @Sendable (inout Record) -> Bool) {
        store.core.runPastGate { [self] in
            // What is replaced is released outside the lock: that may run user code.
            let (value, former) = record.withLock { record -> (State.Value?, [Step]) in
                let former = record.steps
                guard move(&record) else { return (nil, former) }
                record.isStepping = true
                return (record.steps[record.position].value, former)
            }
            guard let value else { return }
            store.computed.state._state.replace(value)
            record.withLock { $0.isStepping = false }
            withExtendedLifetime(former) {}
        }
    }

    // MARK: Commits

    /// The value has changed; called in the lane.
    private func note(_ value: State.Value) {
        let former = record.withLock { record in
            record.isStepping ? nil : record.steps[record.position].value
        }
        // The comparison may be user code, so it runs outside the lock.
        guard let former, !Self.isSame(former, value) else { return }
        // What is forgotten is released outside the lock, too.
        let forgotten = record.withLock { record in
            let name = record.actions.last { $0.isName }?.text
            let action = name ?? record.actions.map(\.text).joined(separator: ", ")
            var forgotten = Array(record.steps[(record.position + 1)...])
            record.steps.removeSubrange((record.position + 1)...)
            let timestamp = record.actions.first?.timestamp ?? WallClock.now
            record.steps.append(Step(value: value, action: action, timestamp: timestamp))
            if record.steps.count > capacity { forgotten.append(record.steps.removeFirst()) }
            record.position = record.steps.count - 1
            return forgotten
        }
        withExtendedLifetime(forgotten) {}
    }

    private static func isSame(_ old: State.Value, _ new: State.Value) -> Bool {
        if let old = old as? any Equatable { return old.equals(new) }
        // What can't be encoded counts as changed.
        let encoder = CanonicalCoder()
        guard let old = try? encoder.encode(old) else { return false }
        return old == (try? encoder.encode(new))
    }
}

/// Tells a recorder what its store commits.
private struct RecorderTap: CommitObserver {
    struct Action: Sendable {
        let text: String
        /// Whether the text is the name that the dispatcher gave. It then names the whole chain.
        let isName: Bool
        let timestamp: Timestamp
    }

    /// Gets each action that is about to be committed, and nil for each that has been committed or refused.
    let note: @Sendable (Action?) -> Void

    func willCommit<S: State>(_ commit: CommittedAction<S>) {
        let name = commit.label?.name ?? ""
        let text = name.isEmpty ? String(describing: commit.action) : name
        note(Action(text: text, isName: !name.isEmpty, timestamp: commit.context.timestamp))
    }

    func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) { note(nil) }
}
