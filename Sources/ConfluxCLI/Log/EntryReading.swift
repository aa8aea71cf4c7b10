import ConfluxWorker
import Synchronization

/// How long a command reads entries of the log: until the last one, until something ends it early, or until no further
/// entry comes in time.
final class EntryReading: Sendable {
    private struct Content {
        var isEnded = false
        var failure: CommandFailure?
        var waiter: CheckedContinuation<Void, Never>?
        /// Ends the reading if the next commit takes too long; nil if it may take any time.
        var watchdog: Watchdog?
    }

    private let state = Mutex(Content())

    /// From now on, each commit must come within a time after the last one was taken.
    func limitPauses(to limit: Duration, from address: String) {
        let watchdog = Watchdog(limit) { [weak self] in
            self?.end(
                CommandFailure(
                    .timedOut,
                    """
                    No further entry came from \(address) within \(limit), and the log has more. See what the \
                    sequencer prints, or give more time with --timeout.
                    """))
        }
        state.withLock { $0.watchdog = watchdog }
        watchdog.arm()
    }

    /// Takes a commit, unless the reading has ended. The time that this takes does not count.
    func take(_ body: () -> Void) {
        let (isEnded, watchdog) = state.withLock { ($0.isEnded, $0.watchdog) }
        guard !isEnded else { return }
        watchdog?.disarm()
        body()
        watchdog?.arm()
    }

    /// Ends the reading. Only the first call counts.
    func end(_ failure: CommandFailure? = nil) {
        let (waiter, watchdog) = state.withLock { state in
            guard !state.isEnded else {
                return (nil, nil) as (CheckedContinuation<Void, Never>?, Watchdog?)
            }
            state.isEnded = true
            state.failure = failure
            defer { state.waiter = nil }
            return (state.waiter, state.watchdog)
        }
        watchdog?.cancel()
        waiter?.resume()
    }

    /// Waits for the end.
    ///
    /// - Returns: Why it came early, if it did.
    func ended() async -> CommandFailure? {
        await withCheckedContinuation { continuation in
            let isEnded = state.withLock { state in
                if !state.isEnded { state.waiter = continuation }
                return state.isEnded
            }
            if isEnded { continuation.resume() }
        }
        return state.withLock { $0.failure }
    }
}
