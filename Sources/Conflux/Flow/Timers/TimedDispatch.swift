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
/// ordered like any other. Its ``ActionContext/origin`` has no incarnation, and the timer's number as its counter.
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
    ///   ``DispatchError``: `rejected` if the sequencer has no room for more timers, for example.
    @discardableResult
    public func dispatch(
        _ action: State.Action, after delay: Duration, every interval: Duration? = nil,
        key: String? = nil
    ) -> DispatchHandle {
        core.dispatch(action) {
            $0.timed(Timing(due: .after(delay), interval: interval, key: key))
        }
    }

    /// Dispatches an action to this store at a time of day.
    ///
    /// - Parameters:
    ///   - action: What happens then.
    ///   - time: When, by the time of the log, which follows the clock of the sequencer's host. At once if it has passed.
    ///   - interval: As for ``dispatch(_:after:every:key:)``.
    ///   - key: As for ``dispatch(_:after:every:key:)``.
    /// - Returns: A handle, as for ``dispatch(_:after:every:key:)``.
    @discardableResult
    public func dispatch(
        _ action: State.Action, at time: Timestamp, every interval: Duration? = nil,
        key: String? = nil
    ) -> DispatchHandle {
        core.dispatch(action) {
            $0.timed(Timing(due: .at(time), interval: interval, key: key))
        }
    }

    /// Ends a timer of this store.
    ///
    /// - Parameters:
    ///   - key: The key with which it was set.
    ///   - limit: How long to wait for the sequencer; nil to wait as long as it takes.
    /// - Returns: Whether it ended. If not, it has fired for the last time, was cancelled, or was never set.
    /// - Throws: ``DispatchError``, if that is not known.
    @discardableResult
    public func cancelTimer(
        _ key: String, within limit: Duration? = nil
    ) async throws(DispatchError) -> Bool {
        try await core.cancelTimer(key).cancelled(within: limit)
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
            $0.timed(Timing(due: .after(delay), interval: interval, key: key))
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
            $0.timed(Timing(due: .at(time), interval: interval, key: key))
        }
    }

    /// Ends a timer of the store, or one for all stores of the state.
    ///
    /// - Parameters:
    ///   - key: The key with which it was set.
    ///   - limit: How long to wait for the sequencer; nil to wait as long as it takes.
    /// - Returns: Whether it ended.
    /// - Throws: ``DispatchError``, if that is not known.
    @discardableResult
    public func cancelTimer(
        _ key: String, within limit: Duration? = nil
    ) async throws(DispatchError) -> Bool {
        let handle =
            switch destination {
            case .store: with(StoreCore<State>.self) { $0.cancelTimer(key) }
            case .all: with(GlobalChannel<State>.self) { $0.cancelTimer(key) }
            case .elsewhere: with(RouteOnly<State>.self) { $0.route.cancelTimer(key) }
            }
        return try await handle.cancelled(within: limit)
    }
}

/// When an action is dispatched, and by what key that can be cancelled.
package struct Timing: Sendable {
    package enum Due: Sendable {
        case after(Duration)
        case at(Timestamp)
    }

    package var due: Due
    package var interval: Duration?
    package var key: String?

    package init(due: Due, interval: Duration?, key: String?) {
        (self.due, self.interval, self.key) = (due, interval, key)
    }
}

extension StoreCore {
    fileprivate func cancelTimer(_ key: String) -> DispatchHandle {
        currentRoute?.route.cancelTimer(key) ?? DispatchHandle(.failed(withoutLog))
    }
}

extension GlobalChannel {
    fileprivate func cancelTimer(_ key: String) -> DispatchHandle {
        currentRoute?.route.cancelTimer(key) ?? DispatchHandle(.failed(.notReplicated(S.self)))
    }
}

extension DispatchHandle {
    /// Waits until a timer has ended.
    ///
    /// - Returns: Whether there was one.
    fileprivate func cancelled(within limit: Duration?) async throws(DispatchError) -> Bool {
        do throws(DispatchError) {
            _ = try await receipt(within: limit)
            return true
        } catch {
            if error.reason is NoSuchTimer { return false }
            throw error
        }
    }
}

/// There is no timer with that key.
package struct NoSuchTimer: Error {
    package init() {}
}
