import Conflux
import ConfluxProtocol
import ConfluxVocabulary

extension Node {
    /// Waits until this process has locked a store.
    ///
    /// While the lock is held, actions of other nodes for the store wait, and with them what these nodes dispatch later.
    /// They are rejected once they have waited for 10 seconds (`RejectionCode.locked`). This node's own actions pass, and
    /// so do those that another one dispatches under the lease. What is in the log already, and not applied here yet, comes
    /// before the lock: await ``barrier(patience:)`` before you read.
    ///
    /// ```swift
    /// let lock = try await node.lock(hall, within: .seconds(5))
    /// try await node.barrier()
    /// let free = hall.value.free
    /// try await hall.dispatch(.block(free), under: lock).receipt()
    /// try await lock.release()
    /// ```
    ///
    /// Keep it short. Where all stores are hosted here, ``transaction(attempts:patience:_:)`` holds up nobody.
    ///
    /// - Parameters:
    ///   - store: A replicated store.
    ///   - limit: How long to wait for the lock; nil to wait as long as it takes.
    /// - Returns: The lock, a lease with the store's name. With keys, the right to host the store is needed.
    /// - Throws: As ``lease(_:within:)``; `rejected` if no node replicates the store.
    public func lock<S: ReplicatedState>(
        _ store: Store<S>, within limit: Duration? = nil
    ) async throws(DispatchError) -> Lease {
        try await core.lease(try name(of: store).description, locks: true, within: limit)
    }

    /// Waits until this process has locked a store, and dispatches an action as the holder. If the action changes nothing,
    /// or is refused, the lock is released.
    ///
    /// It is what `Scope.lock(dispatching:to:)` is for a store of one process. Everything that was in the log before the
    /// lock is applied here before the action is dispatched.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - store: A replicated store.
    ///   - limit: How long to wait for the lock, and then for the action; nil to wait as long as it takes.
    /// - Returns: The lock. Keep it: it is released when you drop it.
    /// - Throws: As ``lock(_:within:)``, and as the receipt of a dispatch; `timedOut` and `cancelled` say nothing of the
    ///   action, which may be taken later. Then nothing is locked.
    public func lock<S: ReplicatedState & ValueHolder>(
        dispatching action: S.Action, to store: Store<S>, within limit: Duration? = nil
    ) async throws -> Lease where S.Value: Equatable {
        let lock = try await lock(store, within: limit)
        try await barrier(patience: limit ?? .seconds(10))
        let former = store.value
        do throws(DispatchError) {
            try await store.dispatch(action, under: lock).receipt(within: limit)
        } catch {
            guard error.code == .refused else { throw error }
        }
        if store.value == former { try await lock.release(within: limit) }
        return lock
    }

    /// Waits until this process has locked some stores, and sends an event under the locks. If the event changes none of
    /// the stores, the locks are released.
    ///
    /// It is what `Scope.lock(sending:)` is for the stores of one process. Everything that was in the log before the
    /// locks is applied here before the event is sent. The log takes the event only while all the locks are held. It
    /// reaches every replicated store whose state handles it, and no store that a process has for itself.
    ///
    /// Locks are taken one after another in the order of the stores' names. So two of these calls don't block each other.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - stores: The stores to lock, one at least, which this node replicates.
    ///   - limit: How long to wait for all the locks, and then for the event; nil to wait as long as it takes.
    /// - Returns: The locks, in the order of the stores' names. Keep them: a lock is released when you drop it. Empty if
    ///   the event has changed none of the stores.
    /// - Throws: As ``lock(dispatching:to:within:)``; `rejected` if no state in the log handles the event.
    public func lock<each S: ReplicatedState & ValueHolder>(
        sending event: some Event, over stores: repeat Store<each S>, within limit: Duration? = nil
    ) async throws -> [Lease] where repeat (each S).Value: Equatable {
        let begun = Moment.now.monotonic
        var names: Set<StoreName> = []
        for store in repeat each stores { names.insert(try name(of: store)) }
        precondition(!names.isEmpty, "an event is sent under locks of no store: name one")
        var locks: [Lease] = []
        for name in names.sorted() {
            let left = limit.map { max(.zero, $0 - (Moment.now.monotonic - begun)) }
            locks.append(try await core.lease(name.description, locks: true, within: left))
        }
        try await barrier(patience: limit ?? .seconds(10))
        let former = (repeat (each stores).value)
        let receipt = try await EventRoute.send(
            event, to: core.outbox, on: locks.map { .lease($0.claim) }
        ).receipt(within: limit)
        try await wait(for: receipt, patience: limit ?? .seconds(10))
        var isChanged = false
        for (store, former) in repeat (each stores, each former) {
            isChanged = isChanged || store.value != former
        }
        if isChanged { return locks }
        for lock in locks { try await lock.release(within: limit) }
        return []
    }

    private func name<S: ReplicatedState>(of store: Store<S>) throws(DispatchError) -> StoreName {
        guard let route = store.core.orderedRoute as? OutboxRoute<S>,
            case .store(let name) = route.target
        else { throw .notReplicated(S.self) }
        return name
    }
}
