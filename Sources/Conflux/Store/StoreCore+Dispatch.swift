/// The way of a dispatch to one store: at once where the lane is free, else into the line or along the
/// store's route.
extension StoreCore {
    /// Dispatches to this store, or to its route.
    @inline(__always)
    package func dispatch(_ action: S.Action) {
        let mark = ThreadMark.outsideModels
        if scope.isWatched {
            dispatchWatched(action)
            return
        }
        switch enter(mark) {
        case .free: runEntered(mark) { _ = commit(action) }
        case .busy where enterSoon(mark): runEntered(mark) { _ = commit(action) }
        case .busy, .behind: dispatchBehind(action, mark)
        case .paused: dispatchWatched(action)
        case .closed: return
        }
    }

    @inline(never)
    private func dispatchBehind(_ action: S.Action, _ mark: UnsafeMutablePointer<ThreadMark>) {
        switch admit(.action(action), mark, isPast: false) {
        case .queued(let duty, let turn): serve(duty, turn, mark)
        case .paused: dispatchWatched(action)
        case .closed: return
        case .route(let route): _ = route.submit(action, mayWait: !mark.pointee.isNeeded)
        }
    }

    /// Dispatches to this store, or to its route, and tells how it ends.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - label: What the dispatcher says of it, for middleware.
    /// - Returns: A handle.
    package func dispatchTracked(
        _ action: S.Action, label: @autoclosure () -> DispatchLabel? = nil
    ) -> DispatchHandle {
        let mark = ThreadMark.outsideModels
        if scope.isWatched { return dispatchWatched(action, label: label()) }
        switch enter(mark) {
        case .free: return DispatchHandle(runEnteredTracked(action, nil, mark))
        case .closed: return DispatchHandle(.failed(.storeClosed(S.self)))
        case .paused: return dispatchWatched(action, label: label())
        case .busy where enterSoon(mark):
            return DispatchHandle(runEnteredTracked(action, nil, mark))
        case .busy, .behind: break
        }
        // What travels needs no tally of its own.
        if let route = currentRoute {
            return route.submit(action, mayWait: !mark.pointee.isNeeded)
        }
        let tally = Tally()
        tally.expect(1)
        switch admit(.tracked(action, tally, order: 0), mark, isPast: false) {
        case .queued(let duty, let turn): serve(duty, turn, mark)
        case .paused: return dispatchWatched(action, label: label())
        case .closed: tally.report(.failed(.storeClosed(S.self)), order: 0)
        case .route(let route): return route.submit(action, mayWait: !mark.pointee.isNeeded)
        }
        return tally.handle
    }

    /// Dispatches to this store what is past the gate, and tells a tally that expects one report how it
    /// ends.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - tally: Told how it ends.
    ///   - mark: The thread's.
    ///   - placed: Called once, when it has its place and before the lane is served, or needs none.
    /// - Returns: The route that the action has to take instead; then nothing else was done.
    func admit(
        _ action: S.Action, _ tally: Tally, _ mark: UnsafeMutablePointer<ThreadMark>,
        _ placed: () -> Void
    ) -> (any ActionRoute<S>)? {
        if scope.order.isEmpty, case .free = enter(mark, isPast: true) {
            placed()
            runEntered(mark) { tally.report(commitTracked(action, tally.ticket), order: 0) }
            return nil
        }
        let admission = admit(.tracked(action, tally, order: 0), mark, isPast: true)
        placed()
        switch admission {
        case .queued(let duty, let turn): serve(duty, turn, mark)
        case .paused: preconditionFailure("what is past the gate does not come to it again")
        case .closed: tally.report(.failed(.storeClosed(S.self)), order: 0)
        case .route(let route): return route
        }
        return nil
    }

    private var currentRoute: (any ActionRoute<S>)? {
        control.withLock { $0.isClosed ? nil : route }
    }

    private enum Admission {
        case queued(Duty, DispatchTurn?)
        /// A lock was taken meanwhile: the dispatch has to begin anew.
        case paused
        case closed
        case route(any ActionRoute<S>)
    }

    /// Finds the way of a dispatch that can't run at once.
    ///
    /// - Parameters:
    ///   - job: The dispatch.
    ///   - mark: The thread's.
    ///   - isPast: Whether it is past the gate.
    /// - Returns: Its way.
    private func admit(
        _ job: LaneJob<S>, _ mark: UnsafeMutablePointer<ThreadMark>, isPast: Bool
    ) -> Admission {
        if scope.order.isEmpty { return admit(job, mark, isPast: isPast, behind: nil) }
        // That an action may be committed on another thread is the contract of `State.Action`.
        nonisolated(unsafe) var admission = Admission.closed
        scope.order.reserving {
            admission = admit(job, mark, isPast: isPast, behind: scope.order.hold(for: self))
        }
        return admission
    }

    private func admit(
        _ job: LaneJob<S>, _ mark: UnsafeMutablePointer<ThreadMark>, isPast: Bool,
        behind hold: (any LaneHold)?
    ) -> Admission {
        // Written under the lock and read after it, by this thread alone.
        nonisolated(unsafe) var admission = Admission.closed
        control.withLock { control in
            if control.isClosed { return }
            if !isPast, scope.gate.isClosed {
                admission = .paused
            } else if let route {
                admission = .route(route)
            } else {
                if let hold { append(.hold(hold), to: &control) }
                let turn = appendWithTurn(job, to: &control, mark)
                admission = .queued(control.claim(isImmediate: isImmediate), turn)
            }
        }
        return admission
    }

    /// Does what a thread that put an action into the line has to do.
    private func serve(
        _ duty: Duty, _ turn: DispatchTurn?, _ mark: UnsafeMutablePointer<ThreadMark>
    ) {
        serve(duty, mark)
        if let turn { turn.take(in: self) } else { waitForRoom(mark) }
    }
}
