import ConfluxWorker
import Synchronization

/// How long a command reads entries of the log: until the last one, until something ends it early, or until no further
/// entry comes in time.
final class EntryReading: Sendable {
    private let ends: AsyncStream<CommandFailure?>
    private let continuation: AsyncStream<CommandFailure?>.Continuation
    private let isEnded = Atomic(false)
    /// Ends the reading if the next commit takes too long; nil if it may take any time.
    private let watchdog = Mutex<Watchdog?>(nil)

    init() { (ends, continuation) = AsyncStream.makeStream() }

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
        self.watchdog.withLock { $0 = watchdog }
        watchdog.arm()
    }

    /// Takes a commit, unless the reading has ended. The time that this takes does not count.
    func take(_ body: () -> Void) {
        guard !isEnded.load(ordering: .acquiring) else { return }
        let watchdog = watchdog.withLock { $0 }
        watchdog?.disarm()
        body()
        watchdog?.arm()
    }

    /// Ends the reading. Only the first call counts.
    func end(_ failure: CommandFailure? = nil) {
        guard !isEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
        watchdog.withLock { $0 }?.cancel()
        continuation.yield(failure)
        continuation.finish()
    }

    /// Waits for the end, or until the task is cancelled. Call it once.
    ///
    /// - Returns: Why the end came early, if it did.
    func ended() async -> CommandFailure? { await ends.first { _ in true } ?? nil }
}
