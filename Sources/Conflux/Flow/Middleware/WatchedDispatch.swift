import Synchronization

/// Dispatches where somebody reads along or pauses the flow.
///
/// An action meets the middleware where it is dispatched, then the gate, then its stores:
///
///     dispatch ──▶ middleware ──▶ gate ──▶ lanes, or the route
///                      └ stopped    └ waits for a lock
extension StoreCore {
    /// Dispatches to this store, or to its route.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - label: What the dispatcher says of it.
    ///   - before: Called in the lane, just before the action.
    ///   - after: Called in the lane, just behind it; or where it is found that it does not come.
    /// - Returns: A handle.
    @discardableResult
    func dispatchWatched(
        _ action: S.Action, label: DispatchLabel? = nil, before: (@Sendable () -> Void)? = nil,
        after: (@Sendable () -> Void)? = nil
    ) -> DispatchHandle {
        _ = ThreadMark.outsideModels
        guard let passing = scope.middleware.pass(action, to: self, label: label) else {
            after?()
            return DispatchHandle(.failed(.intercepted))
        }
        // That actions may be committed on another thread is the contract of `State.Action`.
        nonisolated(unsafe) let dispatch = passing.dispatch
        let tally = Tally(ticket: passing.ticket) { [self] outcome in
            scope.middleware.end(dispatch, of: self, outcome)
        }
        tally.expect(1)
        let sent = SentHandle()
        scope.gate.pass(holding: FlowLock.holder(at: scope.gate)) { [self] in
            if let before { run(before) }
            if let route = admit(dispatch.action, tally, ThreadMark.current) {
                sent.handle = route.submit(dispatch.action)
                sent.handle?.whenEnded { tally.report($0, order: 0) }
            }
            if let after { inspect { _, _ in after() } }
        }
        return sent.handle ?? tally.handle
    }
}

extension GlobalChannel {
    /// Dispatches to every store, or to the route.
    @discardableResult
    func dispatchWatched(_ action: S.Action, label: DispatchLabel? = nil) -> DispatchHandle {
        _ = ThreadMark.outsideModels
        guard let passing = scope.middleware.pass(action, to: nil as StoreCore<S>?, label: label)
        else { return DispatchHandle(.failed(.intercepted)) }
        // That actions may be committed on another thread is the contract of `State.Action`.
        nonisolated(unsafe) let dispatch = passing.dispatch
        let scope = scope
        let tally = Tally(ticket: passing.ticket) { outcome in
            scope.middleware.end(dispatch, of: nil, outcome)
        }
        let sent = SentHandle()
        scope.gate.pass(holding: FlowLock.holder(at: scope.gate)) { [self] in
            if let route = admit(dispatch.action, tally, ThreadMark.current) {
                tally.expect(1)
                sent.handle = route.submit(dispatch.action)
                sent.handle?.whenEnded { tally.report($0, order: 0) }
            }
        }
        return sent.handle ?? tally.handle
    }
}

/// The handle of an action that took a route, if it did so already: it can be withdrawn.
private final class SentHandle: Sendable {
    private let content = Mutex<DispatchHandle?>(nil)

    var handle: DispatchHandle? {
        get { content.withLock { $0 } }
        set { content.withLock { $0 = newValue } }
    }
}
