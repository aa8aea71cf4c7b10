import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Actions that the sequencer dispatches later.
///
/// ```swift
/// hall.dispatch(.hold(seat: 17, by: name))
/// hall.dispatch(.expire(seat: 17), after: .seconds(30), key: "hold-17")
/// // The seat is paid for in time:
/// try await hall.cancelTimer("hold-17")
/// ```
///
/// The timer is in the log. So it fires once, whichever processes come and go, also if the sequencer starts again or
/// another one takes over; and what was due while none served fires when one serves again. When it fires, its action is
/// ordered like any other. Its `ActionContext.origin` has no incarnation, and the timer's number as its counter.
extension Store where State: ReplicatedState {
    /// Dispatches an action to this store later.
    ///
    /// - Parameters:
    ///   - action: What happens then.
    ///   - delay: When, from the time at which the timer is in the log: at once if it is negative. The time that passes
    ///     counts, whatever the clock of the sequencer's host shows. At most a hundred years.
    ///   - interval: The time from one firing to the next, 10 ms to a hundred years; nil if it fires once. It counts from
    ///     the time that was intended. Times that pass while no sequencer serves are left out.
    ///   - key: What to cancel or replace it by: 1 to 128 bytes. A timer of this store with the same key ends.
    /// - Returns: A handle. Its receipt is the timer's, not the action's: it is in the log. The receipt throws a
    ///   `DispatchError`: `rejected` if the sequencer has no room for more timers, for example.
    @discardableResult
    public func dispatch(
        _ action: State.Action, after delay: Duration, every interval: Duration? = nil,
        key: String? = nil
    ) -> DispatchHandle {
        core.dispatch(action) {
            EntryRoute.of($0, Timing(due: .after(delay), interval: interval, key: key))
        }
    }

    /// Dispatches an action to this store at a time of day.
    ///
    /// - Parameters:
    ///   - action: What happens then.
    ///   - time: When, by the time of the log, which follows the clock of the sequencer's host. At once if it has passed.
    ///   - interval: As for `dispatch(_:after:every:key:)`.
    ///   - key: As for `dispatch(_:after:every:key:)`.
    /// - Returns: A handle, as for `dispatch(_:after:every:key:)`.
    @discardableResult
    public func dispatch(
        _ action: State.Action, at time: Timestamp, every interval: Duration? = nil,
        key: String? = nil
    ) -> DispatchHandle {
        core.dispatch(action) {
            EntryRoute.of($0, Timing(due: .at(time), interval: interval, key: key))
        }
    }

    /// Ends a timer of this store.
    ///
    /// - Parameters:
    ///   - key: The key with which it was set.
    ///   - limit: How long to wait for the sequencer; nil to wait as long as it takes.
    /// - Returns: Whether it ended. If not, it has fired for the last time, was cancelled, or was never set.
    /// - Throws: `DispatchError`, if that is not known.
    @discardableResult
    public func cancelTimer(
        _ key: String, within limit: Duration? = nil
    ) async throws(DispatchError) -> Bool {
        try await cancel(key, by: core.orderedRoute, within: limit)
    }
}

extension Actions where State: ReplicatedState {
    /// Dispatches an action to the store, or to all stores of the state, later.
    ///
    /// - Parameters: As for a store.
    /// - Returns: A handle, as for a store.
    @discardableResult
    public func dispatch(
        _ action: State.Action, after delay: Duration, every interval: Duration? = nil,
        key: String? = nil
    ) -> DispatchHandle {
        dispatch(action) {
            EntryRoute.of($0, Timing(due: .after(delay), interval: interval, key: key))
        }
    }

    /// Dispatches an action to the store, or to all stores of the state, at a time of day.
    ///
    /// - Parameters: As for a store.
    /// - Returns: A handle, as for a store.
    @discardableResult
    public func dispatch(
        _ action: State.Action, at time: Timestamp, every interval: Duration? = nil,
        key: String? = nil
    ) -> DispatchHandle {
        dispatch(action) {
            EntryRoute.of($0, Timing(due: .at(time), interval: interval, key: key))
        }
    }

    /// Ends a timer of the store, or one for all stores of the state.
    ///
    /// - Parameters:
    ///   - key: The key with which it was set.
    ///   - limit: How long to wait for the sequencer; nil to wait as long as it takes.
    /// - Returns: Whether it ended.
    /// - Throws: `DispatchError`, if that is not known.
    @discardableResult
    public func cancelTimer(
        _ key: String, within limit: Duration? = nil
    ) async throws(DispatchError) -> Bool {
        try await cancel(key, by: orderedRoute, within: limit)
    }
}

/// When an action is dispatched, and by what key that can be cancelled.
package struct Timing: Sendable {
    package var due: TimerOrder.Due
    package var interval: Duration?
    package var key: String?

    package init(due: TimerOrder.Due, interval: Duration?, key: String?) {
        (self.due, self.interval, self.key) = (due, interval, key)
    }
}

/// Ends a timer of the target of a route.
///
/// - Returns: Whether there was one.
private func cancel<S: State>(
    _ key: String, by route: (any ActionRoute<S>)?, within limit: Duration?
) async throws(DispatchError) -> Bool {
    guard let route = route as? any TimerKeeper else {
        throw (route as? ClosedRoute<S>)?.error ?? .notReplicated(S.self)
    }
    do throws(DispatchError) {
        try await route.cancelTimer(key).receipt(within: limit)
        return true
    } catch {
        if (error.reason as? RejectionReason)?.code == .noSuchTimer { return false }
        throw error
    }
}

/// A route by which timers can be cancelled, of whatever state.
private protocol TimerKeeper { func cancelTimer(_ key: String) -> DispatchHandle }

extension OutboxRoute: TimerKeeper {
    fileprivate func cancelTimer(_ key: String) -> DispatchHandle {
        outbox.submit(.cancel(TimerKey(target: target, name: key)), mayWait: false)
    }
}

extension EntryRoute {
    /// - Returns: A route that sets a timer for an action, instead of sending it.
    fileprivate static func of(
        _ route: any ActionRoute<S>, _ timing: Timing
    ) -> any ActionRoute<S> {
        of(route) { (entry, outbox, mayWait) throws(DispatchError) in
            outbox.submit(.set(try TimerOrder(timing, [entry])), mayWait: mayWait)
        }
    }
}
