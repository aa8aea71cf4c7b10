/// How a dispatch reaches one store: at once if the lane is free, otherwise by the line or by the
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
        let place = reserve(job(action), mark, isPast: false)
        switch place.placement {
        case .kept: place.serve(mark)
        case .paused: dispatchWatched(action)
        case .closed: return
        case .routed:
            guard let route = currentRoute else { return dispatch(action) }
            _ = route.submit(action, mayWait: !mark.pointee.isNeeded)
        }
    }

    /// Dispatches to this store, or to its route, and reports how it ends.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - label: The dispatcher's label, for middleware.
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
        // An action that takes a route needs no tally of its own.
        if let route = currentRoute {
            return route.submit(action, mayWait: !mark.pointee.isNeeded)
        }
        let tally = Tally()
        tally.expect(1)
        let place = reserve(job(action, tally), mark, isPast: false)
        switch place.placement {
        case .kept: place.serve(mark)
        case .paused: return dispatchWatched(action, label: label())
        case .closed: tally.report(.failed(.storeClosed(S.self)), order: 0)
        case .routed: return dispatchTracked(action, label: label())
        }
        return tally.handle
    }

    /// Dispatches an action that passed the gate to this store, and reports how it ends to a tally
    /// that expects one report.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - tally: Gets the outcome.
    ///   - mark: The thread's mark.
    ///   - placed: Called once: when the action has its place and before the lane is served, or
    ///     when it needs none.
    /// - Returns: The route that the action has to take instead. If there is one, nothing else was
    ///   done.
    func admit(
        _ action: S.Action, _ tally: Tally, _ mark: UnsafeMutablePointer<ThreadMark>,
        _ placed: () -> Void
    ) -> (any ActionRoute<S>)? {
        if scope.order.isEmpty, case .free = enter(mark, isPast: true) {
            placed()
            runEntered(mark) { tally.report(commitTracked(action, tally.ticket), order: 0) }
            return nil
        }
        let place = reserve(job(action, tally), mark, isPast: true)
        if place.placement == .routed {
            guard let route = currentRoute else { return admit(action, tally, mark, placed) }
            placed()
            return route.route
        }
        placed()
        if place.placement == .closed { tally.report(.failed(.storeClosed(S.self)), order: 0) }
        place.serve(mark)
        return nil
    }

    @inline(__always)
    var currentRoute: KeptRoute<S>? {
        KeptRoute.of(control.withLock { $0.machine.isClosed ? nil : route })
    }

    /// Keeps a place in the line, behind what the store has to wait for.
    func reserve(
        _ job: LaneJob, _ mark: UnsafeMutablePointer<ThreadMark>, isPast: Bool
    ) -> Reservation {
        // Used by this thread alone.
        nonisolated(unsafe) let thread = mark
        return scope.order.reservingInState { isOrdered in
            var place = Reservation()
            let hold = isOrdered ? scope.order.hold(for: self) : nil
            place.placement = place.place(job, in: self, behind: hold, isPast: isPast, thread)
            return place
        }
    }
}
