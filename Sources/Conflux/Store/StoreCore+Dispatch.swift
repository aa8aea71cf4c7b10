/// How a dispatch reaches one store: at once if the lane is free, otherwise by the line or by the
/// store's route.
extension StoreCore {
    /// Whether a dispatch has more to do than to go to this store.
    @inline(__always)
    var isWatched: Bool {
        isConcerned || !scope.middleware.isEmpty || scope.gate.isClosed
    }

    /// Dispatches to this store, or to its route.
    @inline(__always)
    package func dispatch(_ action: S.Action) {
        let mark = ThreadMark.outsideModels
        if isWatched {
            dispatchWatched(action)
            return
        }
        switch enterNow(mark) {
        case .free: runEntered(mark) { _ = commit(action) }
        case .busy, .behind: dispatchBehind(action, mark)
        case .paused: dispatchWatched(action)
        case .closed: return
        }
    }

    @inline(never)
    private func dispatchBehind(_ action: S.Action, _ mark: UnsafeMutablePointer<ThreadMark>) {
        var place = Reservation()
        switch place.place(job(action), in: self, isPast: false, mark) {
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
        if isWatched { return dispatchWatched(action, label: label()) }
        switch enterNow(mark) {
        case .free: return DispatchHandle(runEnteredTracked(action, nil, mark))
        case .closed: return DispatchHandle(.failed(.storeClosed(S.self)))
        case .paused: return dispatchWatched(action, label: label())
        case .busy, .behind: break
        }
        // An action that takes a route needs no tally of its own.
        if let route = currentRoute {
            return route.submit(action, mayWait: !mark.pointee.isNeeded)
        }
        let tally = Tally()
        tally.expect(1)
        var place = Reservation()
        switch place.place(job(action, tally), in: self, isPast: false, mark) {
        case .kept: place.serve(mark)
        case .paused: return dispatchWatched(action, label: label())
        case .closed: tally.report(.failed(.storeClosed(S.self)), order: 0)
        case .routed: return dispatchTracked(action, label: label())
        }
        return tally.handle
    }

    /// The route that dispatches to this store take; nil if they take none.
    package var orderedRoute: (any ActionRoute<S>)? { currentRoute?.route }

    @inline(__always)
    var currentRoute: KeptRoute<S>? {
        KeptRoute.of(control.withLock { $0.machine.isClosed ? nil : route })
    }
}
