import ConfluxVocabulary
import Dispatch

/// When and where an action is committed, seen from the dispatching code.
public enum DispatchMode: Sendable, Hashable, CaseIterable {
    /// It is enqueued, and the call returns; nothing is committed on the calling thread.
    case async
    /// The call returns when the action has ended.
    ///
    /// Inside a commit, an observer, or the completion of a dispatch in another mode, the call would wait
    /// for the calling thread. There it fails with ``DispatchError/Code/wouldBlock``, and dispatches nothing.
    /// Don't call it while a lock that the same code is to release pauses the flow.
    ///
    /// A thread of the store's queue, or of the main queue, runs what stores have given to that
    /// queue while it waits, since the queue itself can't. This works if the executor is
    /// ``Executor/mainThread``, ``Executor/within(_:)`` or ``Executor/queue(_:)``, and the call
    /// runs on that queue or on one that targets it. It doesn't work with a context of your own,
    /// inside another queue's `sync`, on a queue that the store's queue targets, or while code of
    /// yours waits for the thread. There the call waits for ever.
    case sync
    /// It is enqueued when all earlier dispatches in this mode have ended, and their completions have
    /// returned. What a completion dispatches in this mode comes behind those that wait already.
    case serial
    /// It is committed on the main queue, whatever the store's executor is; at once if called there, the
    /// store is on `.immediate` and nothing is under way. It is rejected for a store that a node replicates: that
    /// one applies the log's actions on its own executor, which may be ``Executor/mainThread``.
    case mainThread
}

extension Scope {
    /// Dispatches an action to a store, in a mode.
    ///
    /// ```swift
    /// scope.dispatch(.increment, to: counter, mode: .serial) { _ in
    ///     scope.dispatch(.decrement, to: counter)
    /// }
    /// ```
    ///
    /// All modes keep the order of the store's lane. Actions dispatched in mode `async` by one
    /// thread come in the order of that thread. In the modes that return at once, a call that
    /// leaves more than 65,536 actions of a scope under way waits for room before it returns, for a
    /// second at most.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - store: A store of this scope. A store of another scope ends the program with a message.
    ///   - mode: When and where it is committed.
    ///   - others: What has to end before it is dispatched: other dispatches, and operations.
    ///   - name: What is done, in a word, for middleware.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    ///   - next: Called once when the action has ended, with the receipt or the reason why there is
    ///     none. It is called on the thread that ended the action, holding no lock. What it
    ///     dispatches follows from this dispatch.
    /// - Returns: A handle to wait for the end with. You may drop it.
    @discardableResult
    public func dispatch<S: State>(
        _ action: S.Action, to store: Store<S>, mode: DispatchMode = .async,
        after others: DispatchHandle..., name: String = "", file: StaticString = #file,
        function: StaticString = #function, line: UInt = #line,
        then next: (@Sendable (Result<Receipt, DispatchError>) -> Void)? = nil
    ) -> DispatchHandle where S.Action: Sendable {
        let label = DispatchLabel(name, file: file, function: function, line: line)
        return dispatch(action, to: store, mode, after: others, label, then: next)
    }

    func dispatch<S: State>(
        _ action: S.Action, to store: Store<S>, _ mode: DispatchMode,
        after others: [DispatchHandle], _ label: DispatchLabel,
        then next: (@Sendable (Result<Receipt, DispatchError>) -> Void)?
    ) -> DispatchHandle where S.Action: Sendable {
        precondition(store.core.scope === self, "\(S.self)'s store belongs to another scope")
        let core = store.core
        // Other threads only compare it.
        nonisolated(unsafe) let mark = ThreadMark.outsideModels
        if mode == .sync, !mark.pointee.mayWait {
            let handle = DispatchHandle(.failed(.wouldBlock))
            next?(.failure(.wouldBlock))
            return handle
        }
        backlog.begin()
        let handle = undertake(after: others, isSerial: mode == .serial) { [self] end in
            let held = FlowLock.held
            let send: @Sendable () -> Void = { [self] in
                let handle = FlowLock.$held.withValue(held) {
                    mode == .mainThread
                        ? core.dispatchWatched(action, label: label, isOnMain: true)
                        : core.dispatchTracked(action, label: label)
                }
                handle.whenEnded { [self] outcome in
                    FlowLock.$held.withValue(held) {
                        // If this is not the waiting thread, others' dispatches may need it.
                        if mode == .sync, ThreadMark.current == mark {
                            next?(outcome.result)
                        } else {
                            ThreadMark.current.neededByOthers { next?(outcome.result) }
                        }
                    }
                    end(outcome)
                    backlog.end()
                }
            }
            // An action that takes a route is not committed here anyway. This thread may wait for the
            // route's room.
            if mode == .serial || mode == .async && !core.isRouted { later(send) } else { send() }
        }
        if mode == .sync {
            WorkQueue.wait(for: handle, on: [core.executor.queue, main.queue].compactMap { $0 })
        }
        backlog.waitForRoom()
        return handle
    }

    /// Runs a function in this scope on the scope's queue, behind what the queue was given before.
    private func later(_ body: @escaping @Sendable () -> Void) {
        queue.async {
            ThreadMark.current.neededByOthers { self.run(body) }
        }
    }
}

extension Outcome {
    /// The outcome as a `Result`.
    var result: Result<Receipt, DispatchError> {
        Result { () throws(DispatchError) in try get() }
    }
}
