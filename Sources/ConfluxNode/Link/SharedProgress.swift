import ConfluxProtocol
import Synchronization

/// How far the thread that applies has come, for the link, which looks when it has to know: once a beat
/// for the sequencer, and while something waits for room. Only then it is notified.
// Sendable: everything that changes is guarded by the mutex.
final class SharedProgress: Sendable {
    /// What the link needs to know.
    struct Content: Sendable, Equatable {
        var machine = ApplyProgress()
        /// How many of this node's actions were told their outcome.
        var toldCount: UInt64 = 0
        /// Whether so many outcomes wait for stores that nothing more may be dispatched.
        var isFull = false
    }

    private struct Shared {
        var content = Content()
        /// What the link waits to see changed.
        var awaited: Content?
    }

    private let state = Mutex(Shared())
    private let notify: @Sendable () -> Void

    init(notify: @escaping @Sendable () -> Void) {
        self.notify = notify
    }

    /// Called by the thread that applies, behind each job.
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

    /// The link is notified of the next change.
    func awaitChange() -> Content {
        state.withLock { state in
            state.awaited = state.content
            return state.content
        }
    }
}
