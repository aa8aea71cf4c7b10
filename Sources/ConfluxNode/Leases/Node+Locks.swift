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
        guard let route = store.core.orderedRoute as? OutboxRoute<S>,
            case .store(let name) = route.target
        else { throw .notReplicated(S.self) }
        return try await core.lease(name.description, locks: true, within: limit)
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
}
