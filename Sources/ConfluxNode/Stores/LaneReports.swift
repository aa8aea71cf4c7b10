import ConfluxProtocol
import Synchronization

/// What a store's lane has done of what it was given.
enum LaneReport: Sendable {
    /// A run is committed, and these entries of it had no effect.
    case ran(serial: UInt64, [NoEffect])
    /// The snapshot of this request is decoded, or can't be.
    case decoded(request: UInt64, Result<ReplicaLane.Putting, any Error>)
    /// The snapshot of this request is in, or could not be put in.
    case restored(request: UInt64, (any Error)?)
    /// A copy of the state at a digest point behind the snapshot of this request; nil if the store
    /// was released.
    case copied(request: UInt64, SnapshotPlace, Encoding?)
}

/// What lanes report, from whichever thread serves them, for the thread that applies.
///
/// A lane on the thread that applies reports while that thread hands out runs, which then looks by
/// itself: only who reports at another time notifies it.
// Sendable: everything that changes is guarded by the mutex.
final class LaneReports: Sendable {
    private struct Content {
        var reports: [LaneReport] = []
        /// Whether the thread that applies will look without being notified.
        var isExpected = false
    }

    private let state = Mutex(Content())
    private let notify: @Sendable () -> Void

    init(notify: @escaping @Sendable () -> Void) {
        self.notify = notify
    }

    /// From here on the thread that applies looks by itself, until it has looked once.
    func expect() {
        state.withLock { $0.isExpected = true }
    }

    func add(_ report: LaneReport) {
        let mustNotify = state.withLock { state in
            state.reports.append(report)
            defer { state.isExpected = true }
            return !state.isExpected
        }
        if mustNotify { notify() }
    }

    func take() -> [LaneReport] {
        state.withLock { state in
            state.isExpected = false
            guard !state.reports.isEmpty else { return [] }
            defer { state.reports = [] }
            return state.reports
        }
    }
}
