import Synchronization

/// What a value was and what it became.
public struct Change<Value> {
    /// The value before.
    public let old: Value
    /// The value after.
    public let new: Value

    /// Pairs two values.
    ///
    /// - Parameters:
    ///   - old: The value before.
    ///   - new: The value after.
    public init(old: Value, new: Value) {
        self.old = old
        self.new = new
    }
}

extension Change: Sendable where Value: Sendable {}
extension Change: Equatable where Value: Equatable {}

/// The changes of a store's value, or of a part of it, as ``ReadableStore/changes(of:)`` returns them.
public struct ValueChanges<Root: Sendable, Value: Sendable>: AsyncSequence, Sendable {
    /// Begins to read, with the changes since the sequence was made.
    private let begin: @Sendable (ChangeReader<Value>) -> AtEnd
    private let isSame: @Sendable (Value, Value) -> Bool

    init<State: ValueHolder>(
        of store: Store<State>, _ part: @escaping @Sendable (Root) -> Value,
        isSame: @escaping @Sendable (Value, Value) -> Bool
    ) where State.Value == Root {
        self.isSame = isSame
        let (core, state) = (store.core, store.computed.state._state)
        let first = state.readVersion(part)
        begin = { reader in
            let last = Mutex(first)
            // Called in the lane, or after its end.
            let look: @Sendable (ValueState<Root, State.Action>) -> Void = { state in
                let new = (value: part(state.held), version: state.version)
                let old = last.withLock { $0 }
                if new.version == old.version || isSame(old.value, new.value) { return }
                // The replaced value is released outside the lock: that may run user code.
                var replaced = new
                last.withLock { swap(&$0, &replaced) }
                reader.add(Change(old: old.value, new: new.value))
            }
            let subscription = LateDisposable()
            core.run {
                subscription.become(state.add(Observation(), look))
                look(state)
            }
            let token = core.whenOver {
                // The first look may have been dropped, and so may the notification of the last commit.
                look(state)
                reader.finish()
            }
            return AtEnd {
                subscription.dispose()
                if let token { core.forgetClose(token) }
            }
        }
    }

    /// Begins to read, with the changes since the sequence was made.
    ///
    /// - Returns: An iterator over the changes. Two tasks must not use it at once.
    public func makeAsyncIterator() -> AsyncStream<Change<Value>>.Iterator {
        let reader = ChangeReader(isSame: isSame)
        let end = begin(reader)
        let changes = AsyncStream(unfolding: {
            defer { withExtendedLifetime(end) {} }
            return await reader.next()
        })
        return changes.makeAsyncIterator()
    }
}

/// Keeps one change for a reader: from the first old to the last new value that it has not read.
private final class ChangeReader<Value: Sendable>: Sendable {
    private let pending = Mutex<Change<Value>?>(nil)
    private let isSame: @Sendable (Value, Value) -> Bool
    /// Says that something is pending.
    private let (calls, caller) = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(isSame: @escaping @Sendable (Value, Value) -> Bool) {
        self.isSame = isSame
    }

    func add(_ change: Change<Value>) {
        let replaced = pending.withLock { pending in
            defer { pending = Change(old: pending?.old ?? change.old, new: change.new) }
            return pending
        }
        // The replaced change is released outside the lock.
        withExtendedLifetime(replaced) {}
        caller.yield()
    }

    func finish() {
        caller.finish()
    }

    func next() async -> Change<Value>? {
        for await _ in calls {
            // A value that changed and changed back while nobody read is no change.
            if let change = pending.withLock({ $0.take() }), !isSame(change.old, change.new) {
                return change
            }
        }
        return nil
    }
}

/// Runs a function when nobody holds a reference to it any more.
final class AtEnd: Sendable {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }

    deinit {
        body()
    }
}
