import ConfluxProtocol
import Synchronization

/// The progress of the thread that applies, for the link. The link reads it once a beat, for the sequencer, and while
/// something waits for room. Only then is it notified of changes.
// Sendable: the mutex guards all mutable state.
final class SharedProgress: Sendable {
    /// What the link needs to know.
    struct Content: Sendable, Equatable {
        var machine = ApplyProgress()
        /// How many of this node's actions have been given their outcome.
        var toldCount: UInt64 = 0
        /// Whether as many outcomes wait for stores as may wait, so that nothing more may be dispatched.
        var isFull = false
    }

    private struct Shared {
        var content = Content()
        /// The content whose change the link waits for.
        var awaited: Content?
    }

    private let state = Mutex(Shared())
    private let notify: @Sendable () -> Void

    init(notify: @escaping @Sendable () -> Void) {
        self.notify = notify
    }

    /// Called by the thread that applies, after each job.
    func update(from applier: Applier) {
        let content = Content(
            machine: applier.progress, toldCount: applier.toldCount,
            isFull: applier.waitingOutcomeCount >= applier.waitingOutcomesMax)
        let mustNotify = state.withLock { state in
            state.content = content
            guard let awaited = state.awaited, awaited != content else { return false }
            state.awaited = nil
            return true
        }
        if mustNotify { notify() }
    }

    var content: Content { state.withLock { $0.content } }

    /// Requests a notice of the next change.
    func awaitChange() -> Content {
        state.withLock { state in
            state.awaited = state.content
            return state.content
        }
    }
}
