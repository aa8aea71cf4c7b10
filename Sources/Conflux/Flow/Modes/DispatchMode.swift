import ConfluxVocabulary
import Dispatch

/// When and where an action is committed, seen from the dispatching code.
public enum DispatchMode: Sendable, Hashable, CaseIterable {
    /// It is enqueued, and the call returns; nothing is committed on the calling thread.
    case async
    /// The call returns when it has ended.
    ///
    /// It fails with ``DispatchError/Code/wouldBlock``, and nothing is dispatched, where it would wait for the
    /// calling thread: inside a commit or an observer; where a dispatch in another mode tells its end; and where
    /// a lock pauses the flow that the same thread, or the same task, took by ``Scope/lock()``, outside of
    /// ``FlowLock/run(_:)``. Tasks and threads are known by where they are in memory: one that has ended leaves
    /// that to another, which is refused then, too, as long as such a lock is held.
    ///
    /// A thread of the store's queue, or of the main queue, runs what stores have given to that queue while it
    /// waits; the queue could not. That is seen where the executor is ``Executor/mainThread``,
    /// ``Executor/within(_:)`` or ``Executor/queue(_:)`` and the call runs on that queue or on one that targets
    /// it. What is not seen: a context of your own, a call from a queue inside whose `sync` another one runs,
    /// a queue that the store's queue targets, and code of yours that waits for the thread. There it
    /// waits for ever.
    case sync
    /// It is enqueued behind all that was dispatched in this mode before, with all that follows from that: what is
    /// dispatched in whatever mode, or begun as an operation, where an end is told, and what follows from that in
    /// turn. What follows from one dispatch is in a series of its own as far as it is in this mode. If it has to wait
    /// for anything else, it waits for nothing of that, and is not waited for.
    case serial
    /// It is committed on the main queue, whatever the store's executor is; at once if called there, the
    /// store is on `.immediate` and nothing is under way.
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
    /// All modes keep the order of the store's lane. Actions dispatched in mode `async` by one thread
    /// come in the order of that thread. In the modes that return at once, at most 65,536 actions of a
    /// scope are under way. Above that the call waits for room, for a second at most, and then dispatches
    /// all the same.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - store: A store of this scope: one of another ends the program with a message.
    ///   - mode: When and where it is committed.
    ///   - others: What has to end before it is dispatched: other dispatches, and operations.
    ///   - name: What is done, in a word, for middleware.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    ///   - next: Called once when it has ended, with the receipt or why there is none, holding no lock, on
    ///     the thread that ended it. What it dispatches follows from this dispatch.
    /// - Returns: A handle, by which the end can be waited for. It may be dropped.
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
        // Compared only, by other threads.
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
                // Another thread than the waiting one may be needed for others' dispatches.
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
        // What takes a route is not committed here anyway, and this thread may wait for room.
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

    /// Runs a function in this scope, not on this thread, behind what was given to this before.
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
            // That actions may be committed on another thread is the contract of `State.Action`.
            nonisolated(unsafe) let action = action
            let excursion = Excursion(to: scope.main) { [self] isThere in
                let job = LaneJob<S>.tracked(action, tally, order: 0)
                guard isThere else { return drop(job) }
                scope.runLane(ThreadMark.current) { perform(job) }
            }
            let mark = ThreadMark.current
            let place = reserve(.hold(excursion), mark, isPast: true)
            placed()
            if place.placement != .kept {
                let isClosed = place.placement == .closed
                tally.report(
                    .failed(isClosed ? .storeClosed(S.self) : .passedOver(S.self)), order: 0)
            }
            place.serve(mark)
            return nil
        }
    }
}

/// Work of a lane that is done in another place than its executor's.
private final class Excursion: LaneHold {
    private let executor: Executor
    private let work: @Sendable (_ isThere: Bool) -> Void

    init(to executor: Executor, _ work: @escaping @Sendable (_ isThere: Bool) -> Void) {
        self.executor = executor
        self.work = work
    }

    func arrive(_ lane: Lane) -> Bool {
        executor.execute { [self] in
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
