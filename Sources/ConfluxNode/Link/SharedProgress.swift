import ConfluxProtocol
import Synchronization

/// How far the thread that applies has come, for the link. The link looks when it has to know: once
/// per beat for the sequencer, and while something waits for room. It is notified only while
/// something waits.
// Sendable: everything that changes is guarded by the mutex.
final class SharedProgress: Sendable {
    /// What the link needs to know.
    struct Content: Sendable, Equatable {
        var machine = ApplyProgress()
        /// How many of this node's actions have had their outcome told.
        var toldCount: UInt64 = 0
        /// Whether too many outcomes wait for stores, so that nothing more may be dispatched.
        var isFull = false
    }

    private struct Shared {
        var content = Content()
        /// What the link has seen last, if it waits for a change; otherwise nil.
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

    /// Has the link notified of the next change.
    func awaitChange() -> Content {
        state.withLock { state in
            state.awaited = state.content
            return state.content
        }
    }
}
