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
/// ``position`` does not change, and the next step counts from where the pending steps lead. A step that
/// commits have made impossible by then is skipped. A restored value notifies observers like any change;
/// middleware does not see it.
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

        init(value: State.Value, action: String?, timestamp: Timestamp) {
            self.value = value
            self.action = action
            self.timestamp = timestamp
        }
    }

    /// What is exported and imported as a whole.
    private struct Tape: Codable {
        var format = 1
        var position: Int
        var steps: [Step]
    }

    private struct Record: Sendable {
        var steps: [Step]
        var path: RecorderPath
        /// Whether the first value is known. It includes what was committed before.
        var hasBegun = false
        /// *Use*: the commit under way. A chain reports all its actions before the first one is
        /// committed.
        var commit: RecordedCommit?
    }

    private let store: Store<State>
    private let capacity: Int
    private let record: Mutex<Record>
    private let registration = Mutex<AnyDisposable?>(nil)

    /// Begins to record.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - capacity: How many values to keep, at least 2.
    public init(_ store: Store<State>, capacity: Int = 1_024) {
        precondition(capacity >= 2, "a recorder of \(capacity) values has nothing to go back to")
        self.store = store
        self.capacity = capacity
        let first = Step(value: store.value, action: nil, timestamp: WallClock.now)
        record = Mutex(Record(steps: [first], path: RecorderPath(capacity: capacity)))
        let tap = RecorderTap(
            begin: { [weak self] in self?.begin() },
            end: { [weak self] action, timestamp in self?.end(action, timestamp) })
        let registered = store.core.scope.middleware.register(tap, for: store.core)
        registration.withLock { $0 = registered }
        // What was committed before the registration belongs to the first value.
        store.core.run { [weak self] in
            let value = store.computed.state._state.content
            self?.record.withLock { record in
                record.hasBegun = true
                record.steps = [Step(value: value, action: nil, timestamp: first.timestamp)]
            }
        }
    }

    deinit {
        dispose()
    }

    /// Whether the recording has ended.
    public var isDisposed: Bool { registration.withLock { $0 == nil } }

    /// Ends the recording. What was recorded stays, and can be brought back.
    public func dispose() {
        let registered = registration.withLock { registration in
            defer { registration = nil }
            return registration
        }
        registered?.dispose()
    }

    /// The recorded values, oldest first.
    public var steps: [Step] { record.withLock { $0.steps } }

    /// The index in ``steps`` of the value that the store has. It moves when a step is made.
    public var position: Int { record.withLock { $0.path.position } }

    /// Brings back the value before the present one, in the store's lane.
    ///
    /// - Throws: ``StoreError``: `noSuchStep` at the oldest one, `replicated`.
    public func back() throws(StoreError) {
        try go(.by(-1))
    }

    /// Brings back the value after the present one, in the store's lane.
    ///
    /// - Throws: ``StoreError``: `noSuchStep` at the newest one, `replicated`.
    public func forward() throws(StoreError) {
        try go(.by(1))
    }

    /// Brings back a value, in the store's lane.
    ///
    /// - Parameter position: Its index in ``steps`` when the step is made: commits before it may have put
    ///   another value there.
    /// - Throws: ``StoreError``: `noSuchStep`, `replicated`.
    public func jump(to position: Int) throws(StoreError) {
        try go(.to(position))
    }

    /// All that is kept, as JSON in UTF-8. It is encoded on this thread.
    ///
    /// - Returns: What ``import(_:)`` takes.
    /// - Throws: Why a value can't be encoded.
    public func export() throws(CodingFailure) -> [UInt8] {
        let record = record.withLock { $0 }
        return try CanonicalCoder().encode(
            Tape(position: record.path.position, steps: record.steps))
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
        let all = RecorderMove.all(count: steps.count, position: tape.position - kept)
        make(record.withLock { $0.path.plan(all) }) { $0.steps = steps }
    }

    // MARK: Steps

    private func go(_ move: RecorderMove) throws(StoreError) {
        try checkFree()
        let version = store.computed.state._state.version
        let plan = record.withLock { record -> Result<Int, StoreError> in
            // When observers are called, the commit under way is visible already.
            let isVisible = record.commit.map { $0.version != version } ?? false
            let place = record.path.end(afterCommit: isVisible)
            if record.path.place(place, after: move) != nil {
                return .success(record.path.plan(move))
            }
            let isThere = !isVisible && record.path.isAtRest
            return .failure(
                StoreError(
                    .noSuchStep,
                    """
                    There is no value \(move.target(from: place.position)): \(place.count) are kept, \
                    from 0 on, and the store \(isThere ? "is" : "will be") at \(place.position). \
                    Choose one of those (`steps`).
                    """))
        }
        make(try plan.get())
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

    /// Makes a step that was planned: in the lane, as soon as no lock pauses the flow.
    ///
    /// - Parameters:
    ///   - number: The step's number in the plan.
    ///   - change: What else it does to the record.
    private func make(
        _ number: Int, _ change: @escaping @Sendable (inout Record) -> Void = { _ in }
    ) {
        // If a node has begun to replicate the store, the store drops the step, and this object
        // with it.
        let planned = AtEnd { [self] in record.withLock { $0.path.forget(number) } }
        store.core.runPastGate { [self] in
            // What is replaced is released outside the lock: that may run user code.
            let (value, former) = record.withLock { record -> (State.Value?, [Step]) in
                let former = record.steps
                guard record.path.make(number) else { return (nil, former) }
                change(&record)
                return (record.steps[record.path.position].value, former)
            }
            if let value { store.computed.state._state.replace(value) }
            withExtendedLifetime((former, planned)) {}
        }
    }

    // MARK: Commits

    /// An action is about to be committed; called in the lane.
    private func begin() {
        let version = store.computed.state._state.version
        record.withLock { record in
            var commit = record.commit ?? RecordedCommit(version: version)
            commit.expected += 1
            record.commit = commit
        }
    }

    /// An action was committed or refused; called in the lane.
    private func end(_ action: RecorderTap.Action?, _ timestamp: Timestamp) {
        let (value, version) = store.computed.state._state.readVersion { $0 }
        let former = record.withLock { record -> State.Value? in
            record.commit?.note(action)
            // A commit that began before the registration belongs to the first value.
            guard let commit = record.commit, commit.expected == 0 else { return nil }
            guard commit.version != version, record.hasBegun else {
                record.commit = nil
                return nil
            }
            return record.steps[record.path.position].value
        }
        guard let former else { return }
        // The comparison may be user code, so it runs outside the lock.
        let isStep = !Self.isSame(former, value)
        // What is forgotten is released outside the lock: that may run user code.
        let forgotten = record.withLock { record -> [Step] in
            let actions = record.commit?.actions ?? []
            record.commit = nil
            guard isStep else { return [] }
            var forgotten = Array(record.steps[(record.path.position + 1)...])
            record.steps.removeSubrange((record.path.position + 1)...)
            record.steps.append(
                Step(
                    value: value, action: actions.joined(separator: ", "), timestamp: timestamp))
            if record.steps.count > capacity { forgotten.append(record.steps.removeFirst()) }
            record.path.commit()
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
    }

    let begin: @Sendable () -> Void
    /// Gets nil for an action that was refused.
    let end: @Sendable (Action?, Timestamp) -> Void

    func willCommit<S: State>(_ commit: CommittedAction<S>) {
        begin()
    }

    func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
        guard refusal == nil else { return end(nil, commit.context.timestamp) }
        let name = commit.label?.name ?? ""
        let text = name.isEmpty ? String(describing: commit.action) : name
        end(Action(text: text, isName: !name.isEmpty), commit.context.timestamp)
    }
}

/// What a store is committing: one action, or those of a chain.
private struct RecordedCommit: Sendable {
    /// The value's version before.
    let version: UInt64
    /// How many actions have begun and not ended.
    var expected = 0
    private(set) var actions: [String] = []

    init(version: UInt64) {
        self.version = version
    }

    mutating func note(_ action: RecorderTap.Action?) {
        expected -= 1
        guard let action else { return }
        if action.isName { actions = [action.text] } else { actions.append(action.text) }
    }
}
