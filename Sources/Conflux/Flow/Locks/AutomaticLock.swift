import Synchronization

extension Scope {
    /// Pauses the flow, and dispatches an action as the holder. If the action changes nothing, or
    /// is refused, the lock is released automatically. Otherwise an observer of the change
    /// (``lockInForce``) or the lock's holder releases it.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - store: A store of this scope that no node replicates.
    /// - Returns: The lock. You may drop it: the lock is held until the action has been observed, and then by
    ///   the code that took it from ``lockInForce``.
    /// - Throws: ``StoreError``: `replicated` if a node replicates the store, since a scope's lock stops no other process:
    ///   `Node.lock(dispatching:to:within:)` does. Then nothing was dispatched.
    @discardableResult
    public func lock<S: ValueHolder>(
        dispatching action: S.Action, to store: Store<S>
    ) throws(StoreError) -> FlowLock where S.Value: Equatable {
        if store.core.isRouted { throw .noLock(over: S.self) }
        return lockHere(dispatching: action, to: store)
    }

    /// Does the same for a store that is not replicated.
    func lockHere<S: ValueHolder>(dispatching action: S.Action, to store: Store<S>) -> FlowLock
    where S.Value: Equatable {
        precondition(store.core.scope === self, "\(S.self)'s store belongs to another scope")
        let lock = lock()
        lock.run { _ = store.core.dispatchWatched(action, watch: ChangeWatch(lock)) }
        return lock
    }

    /// Pauses the flow, and sends an event as the holder. If the event changes the value of no store of
    /// this process, the lock is released automatically. Otherwise an observer of a change
    /// (``lockInForce``) or the lock's holder releases it.
    ///
    /// If a state is not a ``Model`` or ``Storage``, or its value is not `Equatable`, handling the event
    /// always counts as a change.
    ///
    /// The event stays in this process, even if a node is connected in the scope.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - name: A short name of the dispatch, for middleware.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    /// - Returns: The lock. You may drop it: the lock is held until the event has been observed, and then by
    ///   the code that took it from ``lockInForce``.
    /// - Throws: ``StoreError``: `replicated` if a node replicates or bridges a state that handles the event,
    ///   since a scope's lock stops no other process: `Node.lock(sending:over:within:)` does. Then nothing was sent.
    @discardableResult
    public func lock(
        sending event: some Event, _ name: String = "", file: StaticString = #file,
        function: StaticString = #function, line: UInt = #line
    ) throws(StoreError) -> FlowLock {
        for channel in eventChannels { try channel.checkLock(sending: event) }
        let lock = lock()
        let label = DispatchLabel(name, file: file, function: function, line: line)
        lock.run { _ = send(event, label, watch: ChangeWatch(lock)) }
        return lock
    }
}

extension StoreError {
    /// Another process would not stop.
    static func noLock<S: State>(over state: S.Type) -> StoreError {
        StoreError(
            .replicated,
            """
            A scope's lock stops no other process, and a node sends the actions of \(state.title) to the log. So \
            nothing was dispatched. Lock the store for all processes by Node.lock(dispatching:to:within:), \
            Node.lock(sending:over:within:) or Node.lock(_:within:), or put all that must not be interrupted into one action.
            """)
    }
}

/// Releases a lock if the dispatch under it turns out to change nothing.
final class ChangeWatch: Sendable {
    private struct Findings {
        /// How many stores have not reported yet; one more until all stores have their places.
        var unknown = 1
        var isChanged = false
    }

    private let lock: FlowLock
    private let findings = Mutex(Findings())

    init(_ lock: FlowLock) {
        self.lock = lock
    }

    /// Expects the report of one more store.
    func expect() { findings.withLock { $0.unknown += 1 } }

    /// One store reports, or all stores have their places. A released store has changed nothing that anybody sees.
    func end(isChanged: Bool) {
        let isInVain = findings.withLock { findings in
            findings.unknown -= 1
            findings.isChanged = findings.isChanged || isChanged
            return findings.unknown == 0 && !findings.isChanged
        }
        if isInVain { lock.release() }
    }

    static func isSame(_ old: (any Sendable)?, _ new: (any Sendable)?) -> Bool {
        guard let old = old as? any Equatable else { return false }
        return new.map { old.equals($0) } ?? false
    }
}
