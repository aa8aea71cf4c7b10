import ConfluxVocabulary
import Dispatch

/// When and where an action is committed, seen from the dispatching code.
public enum DispatchMode: Sendable, Hashable, CaseIterable {
    /// It is enqueued, and the call returns; nothing is committed on the calling thread.
    case async
    /// The call returns when the action has ended.
    ///
    /// It fails with ``DispatchError/Code/wouldBlock``, and dispatches nothing, where it would wait
    /// for the calling thread:
    /// - inside a commit or an observer;
    /// - in the completion of a dispatch in another mode;
    /// - outside of ``FlowLock/run(_:)``, while a lock pauses the flow that the same thread or task
    ///   took by ``Scope/lock()``. Threads and tasks are known by their addresses in memory. When
    ///   one has ended, another may get its address, and is refused, too, as long as such a lock is held.
    ///
    /// A thread of the store's queue, or of the main queue, runs what stores have given to that
    /// queue while it waits, since the queue itself can't. This works if the executor is
    /// ``Executor/mainThread``, ``Executor/within(_:)`` or ``Executor/queue(_:)``, and the call
    /// runs on that queue or on one that targets it. It doesn't work with a context of your own,
    /// inside another queue's `sync`, on a queue that the store's queue targets, or while code of
    /// yours waits for the thread. There the call waits for ever.
    case sync
    /// It is enqueued behind all earlier dispatches in this mode, with all that follows from them.
    /// What the completion of a dispatch dispatches, in any mode, or begins as an operation follows
    /// from that dispatch; so does what follows from that in turn. Those of them that are in this
    /// mode form a series of their own. If one of these has to wait for anything else, it waits for
    /// none of the others, and none of them waits for it.
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
        if mode == .sync, let error = reasonNotToWait(mark) {
            let handle = DispatchHandle(.failed(error))
            if let next { handle.whenEnded { next($0.result) } }
            return handle
        }
        let undertaking = Undertaking(in: self, after: others, isSerial: mode == .serial)
        let generation = backlog.begin(undertaking, as: Cascade.generation(in: self))
        let tell: @Sendable (Outcome) -> Void = { outcome in
            guard let next else { return }
            FlowLock.$held.withValue(undertaking.held) {
                Cascade.tell(in: undertaking.cascade, generation, of: self) { next(outcome.result) }
            }
        }
        let send: @Sendable () -> Void = {
            let handle = FlowLock.$held.withValue(undertaking.held) {
                switch mode {
                case .mainThread: core.dispatchOnMain(action, label: label)
                case .async, .serial, .sync: core.dispatchTracked(action, label: label)
                }
            }
            handle.whenEnded { outcome in
                // If this is not the waiting thread, others' dispatches may need it.
                if mode == .sync, ThreadMark.current == mark {
                    tell(outcome)
                } else {
                    ThreadMark.current.neededByOthers { tell(outcome) }
                }
                undertaking.end(outcome)
                self.backlog.end(undertaking, of: generation)
            }
        }
        switch mode {
        // An action that takes a route is not committed here anyway. This thread may wait for the
        // route's room.
        case .async where core.isRouted: undertaking.whenReady(send)
        case .async, .serial: undertaking.whenReady { self.later(send) }
        case .mainThread: undertaking.whenReady(send)
        case .sync:
            undertaking.whenReady(send)
            WorkQueue.wait(
                for: undertaking.handle, on: [core.executor.queue, main.queue].compactMap { $0 })
        }
        backlog.waitForRoom()
        return undertaking.handle
    }

    /// Why this thread must not wait for an action; nil if it may.
    private func reasonNotToWait(_ mark: UnsafeMutablePointer<ThreadMark>) -> DispatchError? {
        if !mark.pointee.mayWait { return .wouldBlock }
        return gate.isPausedByCaller(holding: FlowLock.held(in: self)?.id) ? .ownLock : nil
    }

    /// Runs a function in this scope on the scope's queue, behind what the queue was given before.
    private func later(_ body: @escaping @Sendable () -> Void) {
        queue.async {
            ThreadMark.current.neededByOthers { self.run(body) }
        }
    }
}

extension StoreCore {
    /// Dispatches an action that is committed on the main queue.
    fileprivate func dispatchOnMain(_ action: S.Action, label: DispatchLabel) -> DispatchHandle {
        guard let passing = scope.middleware.pass(action, to: self, label: label) else {
            return DispatchHandle(.failed(.intercepted))
        }
        return scope.go(on: passing) { [self] action, tally, placed in
            tally.expect(1)
            // Actions may be committed on another thread: that is the contract of `State.Action`.
            nonisolated(unsafe) let action = action
            let excursion = Excursion(to: scope.main) { [self] isThere in
                let job = LaneJob<S>.tracked(action, tally, order: 0)
                guard isThere else { return drop(job) }
                scope.runLane(ThreadMark.current) { perform(job) }
            }
            let mark = ThreadMark.current
            let place = reserve(.hold(excursion), mark, isPast: true)
            placed()
            switch place.placement {
            case .kept, .paused: break
            case .closed: tally.report(.failed(.storeClosed(S.self)), order: 0)
            case .routed: tally.report(.failed(.executorIsFixed(S.self)), order: 0)
            }
            place.serve(mark)
            return nil
        }
    }
}

/// Work of a lane that is done on another executor than the lane's.
private final class Excursion: LaneHold {
    private let executor: Executor
    private let work: @Sendable (_ isThere: Bool) -> Void

    init(to executor: Executor, _ work: @escaping @Sendable (_ isThere: Bool) -> Void) {
        self.executor = executor
        self.work = work
    }

    func arrive(_ lane: Lane) -> Bool {
        executor.run { [self] in
            guard lane.takeUp(after: self) else { return }
            work(true)
            lane.leave()
        }
        return false
    }

    func abandon(_ lane: Lane) {
        work(false)
    }
}

extension Outcome {
    /// The outcome as a `Result`.
    var result: Result<Receipt, DispatchError> {
        switch self {
        case .committed(let receipt): .success(receipt)
        case .failed(let error): .failure(error)
        }
    }
}
