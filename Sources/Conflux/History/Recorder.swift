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
/// Each commit that was not refused is recorded with the value that it left, behind the value that there
/// was when the recorder was made. A commit after a step back replaces what lay ahead. At its capacity the
/// recorder gives up the oldest value.
///
/// Values are brought back in the store's lane, between its commits, behind what was dispatched before:
/// before the call returns where the store is on `.immediate` and nothing is under way, and else soon after,
/// where its executor is. A step that is impossible by then, since commits came meanwhile, is left out.
/// Observers hear of a value that is brought back as of any change, in the lane; middleware does not.
///
/// It may be used on any thread, keeps the store alive, and records until it is disposed or let go. A store
/// that a node replicates can be recorded, but not brought back: its value is the log's to decide.
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

        private enum CodingKeys: String, CodingKey {
            case value, action, timestamp
        }

        /// Reads what ``Recorder/export()`` has written.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            value = try container.decode(State.Value.self, forKey: .value)
            action = try container.decodeIfPresent(String.self, forKey: .action)
            timestamp = Timestamp(try container.decode(Int64.self, forKey: .timestamp))
        }

        /// Writes value, action and timestamp; that in nanoseconds since the start of 1970.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(value, forKey: .value)
            try container.encodeIfPresent(action, forKey: .action)
            try container.encode(timestamp.rawValue, forKey: .timestamp)
        }
    }

    /// What is written and read as a whole.
    private struct Tape: Codable {
        var format = 1
        var position: Int
        var steps: [Step]
    }

    private struct Record: Sendable {
        var steps: [Step]
        var position = 0
        /// Whether the first value is known. What was committed before is in it.
        var hasBegun = false
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
        record = Mutex(Record(steps: [first]))
        let tap = RecorderTap { [weak self] action, timestamp, result in
            self?.note(action, timestamp, result as? State.Value)
        }
        let registered = store.core.scope.middleware.register(tap, for: store.core)
        registration.withLock { $0 = registered }
        // What was committed before it was registered belongs to the first value.
        store.core.run { [weak self] in
            let value = store.computed.state.asValue._read { $0 }
            self?.record.withLock { record in
                record.hasBegun = true
                record.steps = [Step(value: value, action: nil, timestamp: first.timestamp)]
            }
        }
    }

    deinit {
        dispose()
    }

    /// Whether it records no more.
    public var isDisposed: Bool { registration.withLock { $0 == nil } }

    /// Records no more. What was recorded stays, and can be brought back.
    public func dispose() {
        let registered = registration.withLock { registration in
            defer { registration = nil }
            return registration
        }
        registered?.dispose()
    }

    /// The values that are kept, oldest first.
    public var steps: [Step] { record.withLock { $0.steps } }

    /// The index in ``steps`` of the value that the store has.
    public var position: Int { record.withLock { $0.position } }

    /// Brings back the value before the present one, in the store's lane.
    ///
    /// - Throws: ``RecorderError``: `noSuchStep` at the oldest one, `replicated`.
    public func back() throws(RecorderError) {
        try go { $0 - 1 }
    }

    /// Brings back the value behind the present one, in the store's lane.
    ///
    /// - Throws: ``RecorderError``: `noSuchStep` at the newest one, `replicated`.
    public func forward() throws(RecorderError) {
        try go { $0 + 1 }
    }

    /// Brings back a value, in the store's lane.
    ///
    /// - Parameter position: Its index in ``steps``, in the lane, too: commits that come before the step may
    ///   have put another value there.
    /// - Throws: ``RecorderError``: `noSuchStep`, `replicated`.
    public func jump(to position: Int) throws(RecorderError) {
        try go { _ in position }
    }

    /// All that is kept, as JSON in UTF-8. It is encoded on this thread.
    ///
    /// - Returns: What ``import(_:)`` takes.
    /// - Throws: Why a value can't be encoded.
    public func export() throws(CodingFailure) -> [UInt8] {
        let record = record.withLock { $0 }
        return try CanonicalEncoder().encode(
            Tape(position: record.position, steps: record.steps))
    }

    /// Takes over what a recorder of the same state has exported, and brings back the value that it was
    /// at, in the store's lane. What was recorded until then is gone.
    ///
    /// - Parameter bytes: What ``export()`` returned.
    /// - Throws: ``CodingFailure`` when it can't be read; ``RecorderError``: `unreadable` when it says
    ///   nothing sensible, `replicated`. Then nothing has changed.
    public func `import`(_ bytes: some Sequence<UInt8>) throws {
        let tape = try CanonicalDecoder().decode(Tape.self, from: bytes)
        guard tape.format == 1, tape.steps.indices.contains(tape.position) else {
            throw RecorderError(
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
        let (steps, position, capacity) = (tape.steps, tape.position - kept, capacity)
        restore { record in
            record.steps = Array(steps[kept...].prefix(capacity))
            record.position = position
        }
    }

    // MARK: Steps

    private func go(to choose: @escaping @Sendable (Int) -> Int) throws(RecorderError) {
        try checkFree()
        let failure = record.withLock { record -> RecorderError? in
            let position = choose(record.position)
            if record.steps.indices.contains(position) { return nil }
            return RecorderError(
                .noSuchStep,
                """
                There is no value \(position): \(record.steps.count) are kept, from 0 on, and the \
                store is at \(record.position). Choose one of those (`steps`).
                """)
        }
        if let failure { throw failure }
        // In the lane, between two commits, which may have come meanwhile.
        restore { record in
            let position = choose(record.position)
            if record.steps.indices.contains(position) { record.position = position }
        }
    }

    private func checkFree() throws(RecorderError) {
        guard store.core.isRouted else { return }
        throw RecorderError(
            .replicated,
            """
            The store is replicated by a node, so that its value is decided by the log: it can be \
            recorded, but not brought back. Dispatch an action that sets the value.
            """)
    }

    /// Changes the record, and gives the store the value of its position, in the lane, when no lock pauses
    /// the flow.
    private func restore(_ change: @escaping @Sendable (inout Record) -> Void) {
        store.core.runPastGate { [self] in
            // What is replaced is let go outside the lock: it is the user's.
            let (value, former) = record.withLock { record in
                let former = record.steps
                change(&record)
                return (record.steps[record.position].value, former)
            }
            store.computed.state.asValue.replace(value)
            withExtendedLifetime(former) {}
        }
    }

    /// A commit was made; called in the lane.
    private func note(_ action: String, _ timestamp: Timestamp, _ result: State.Value?) {
        let step = Step(value: result ?? store.value, action: action, timestamp: timestamp)
        // What is forgotten is let go outside the lock: it is the user's.
        let forgotten = record.withLock { record -> [Step] in
            guard record.hasBegun else { return [] }
            var forgotten = Array(record.steps[(record.position + 1)...])
            record.steps.removeSubrange((record.position + 1)...)
            record.steps.append(step)
            if record.steps.count > capacity { forgotten.append(record.steps.removeFirst()) }
            record.position = record.steps.count - 1
            return forgotten
        }
        withExtendedLifetime(forgotten) {}
    }
}

/// Tells a recorder of commits.
private struct RecorderTap: Middleware {
    let note: @Sendable (String, Timestamp, (any Sendable)?) -> Void

    func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
        guard refusal == nil else { return }
        let action = commit.label.flatMap { $0.name.isEmpty ? nil : $0.name }
        note(
            action ?? String(describing: commit.action), commit.context.timestamp, commit.result)
    }
}

/// Why a recorder can't bring back a value.
public struct RecorderError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: String, Sendable {
        /// No value is kept there.
        case noSuchStep
        /// A node replicates the store.
        case replicated
        /// What was to be imported says nothing sensible.
        case unreadable
    }

    /// What kind of failure it is.
    public let code: Code
    /// What happened and what to do.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The code and the message.
    public var description: String { "\(code.rawValue): \(message)" }
}
