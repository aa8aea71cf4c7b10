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

/// The changes of a store's value, or of a part of it; what ``Store/changes(of:)`` gives.
public struct ValueChanges<Root: Sendable, Value: Sendable>: AsyncSequence, Sendable {
    /// A change, from an old to a new value.
    public typealias Element = Change<Value>
    /// A sequence of changes doesn't fail.
    public typealias Failure = Never

    private let first: (value: Value, version: UInt64)
    private let state: ValueState<Root>
    private let isSame: @Sendable (Value, Value) -> Bool
    private let part: @Sendable (Root) -> Value
    private let lane: any ListenedLane

    init(
        lane: any ListenedLane, state: ValueState<Root>,
        isSame: @escaping @Sendable (Value, Value) -> Bool,
        part: @escaping @Sendable (Root) -> Value
    ) {
        first = state.readVersion(part)
        self.lane = lane
        self.state = state
        self.isSame = isSame
        self.part = part
    }

    /// Begins to listen, with what has changed since the sequence was made.
    public func makeAsyncIterator() -> Iterator {
        let listener = ChangeListener(last: first, isSame: isSame, part: part)
        state.add(listener)
        // In the lane, so that this first look comes between two actions.
        lane.run { [state] in listener.look(at: state) }
        let token = lane.whenEnded { [state] in
            // The first look may have been dropped, and so may the telling of the last commit.
            listener.look(at: state)
            listener.finish()
        }
        return Iterator(
            subscription: Subscription(listener: listener) { [state, lane] in
                state.remove(listener)
                if let token { lane.forgetClose(token) }
            })
    }

    /// Reads the changes one after the other. Not to be used by two tasks at once.
    public struct Iterator: AsyncIteratorProtocol {
        private let subscription: Subscription

        fileprivate init(subscription: Subscription) {
            self.subscription = subscription
        }

        /// Waits for the next change.
        ///
        /// - Returns: nil when the store was released or the task cancelled, and ever after.
        public mutating func next() async -> Change<Value>? {
            await subscription.listener.next()
        }

        /// Waits for the next change.
        ///
        /// - Parameter actor: The caller's isolation.
        /// - Returns: nil when the store was released or the task cancelled, and ever after.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async -> Change<Value>? {
            await subscription.listener.next(isolation: actor)
        }
    }

    /// Ends the listening when the last copy of its iterator is gone.
    fileprivate final class Subscription: Sendable {
        let listener: ChangeListener<Root, Value>
        private let end: @Sendable () -> Void

        init(listener: ChangeListener<Root, Value>, end: @escaping @Sendable () -> Void) {
            self.listener = listener
            self.end = end
        }

        deinit {
            end()
        }
    }
}

/// What listeners need of a store, whatever its state's type.
protocol ListenedLane: Sendable {
    /// Runs a function in the lane; drops it if the store is released before.
    func run(_ body: @escaping @Sendable () -> Void)
    /// Has a function called once when the store is released.
    func whenClosed(_ hook: @escaping @Sendable () -> Void) -> Int?
    /// Has a function called once when the store is released and has committed for the last time.
    func whenEnded(_ hook: @escaping @Sendable () -> Void) -> Int?
    /// Forgets such a function.
    func forgetClose(_ token: Int)
}

extension StoreCore: ListenedLane {
    func run(_ body: @escaping @Sendable () -> Void) {
        inspect { state, _ in
            if state != nil { body() }
        }
    }
}

/// One reader of changes: the lane puts them in, the reader takes them out.
private final class ChangeListener<Root: Sendable, Value: Sendable>: ValueObserver {
    private struct Mailbox {
        /// What was seen last.
        var last: Value
        /// The version that was.
        var version: UInt64
        /// What the reader hasn't taken yet.
        var pending: Change<Value>?
        /// Use: the reader waits. Invariant: nothing is pending then.
        var reader: CheckedContinuation<Void, Never>?
        var isFinished = false
    }

    private let mailbox: Mutex<Mailbox>
    private let isSame: @Sendable (Value, Value) -> Bool
    private let part: @Sendable (Root) -> Value

    init(
        last: (value: Value, version: UInt64),
        isSame: @escaping @Sendable (Value, Value) -> Bool,
        part: @escaping @Sendable (Root) -> Value
    ) {
        mailbox = Mutex(Mailbox(last: last.value, version: last.version))
        self.isSame = isSame
        self.part = part
    }

    func look(at state: ValueState<Root>) {
        let (new, version) = state.readVersion(part)
        let (old, seen) = mailbox.withLock { ($0.last, $0.version) }
        if version <= seen || isSame(old, new) { return }
        let noReader: (CheckedContinuation<Void, Never>?, Change<Value>?) = (nil, nil)
        let (reader, replaced) = mailbox.withLock { mailbox in
            // Where the store is released, another thread may look, too.
            guard !mailbox.isFinished, version > mailbox.version else { return noReader }
            mailbox.last = new
            mailbox.version = version
            let former = mailbox.pending
            mailbox.pending = Change(old: former?.old ?? old, new: new)
            defer { mailbox.reader = nil }
            return (mailbox.reader, former)
        }
        // What was replaced is released outside the lock.
        _ = replaced
        reader?.resume()
    }

    func finish() {
        let reader = mailbox.withLock { mailbox in
            mailbox.isFinished = true
            defer { mailbox.reader = nil }
            return mailbox.reader
        }
        reader?.resume()
    }

    func next(isolation: isolated (any Actor)? = #isolation) async -> Change<Value>? {
        while true {
            let (change, isFinished) = mailbox.withLock { mailbox in
                defer { mailbox.pending = nil }
                return (mailbox.pending, mailbox.isFinished)
            }
            // A value that went and came back while nobody read is no change.
            if let change, !isSame(change.old, change.new) {
                if Task.isCancelled { break }
                return change
            }
            if isFinished || Task.isCancelled { break }
            await wait()
        }
        finish()
        return nil
    }

    private func wait(isolation: isolated (any Actor)? = #isolation) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = mailbox.withLock { mailbox in
                    if mailbox.pending != nil || mailbox.isFinished { return true }
                    mailbox.reader = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            finish()
        }
    }
}
