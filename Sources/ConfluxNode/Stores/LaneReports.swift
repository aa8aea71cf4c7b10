import ConfluxProtocol
import Synchronization

/// What a store's lane has done with what it was given.
enum LaneReport: Sendable {
    /// A run is committed. These of its entries had no effect.
    case ran(serial: UInt64, [NoEffect])
    /// The snapshot of this request is decoded, or can't be decoded.
    case decoded(request: UInt64, Result<ReplicaLane.Putting, any Error>)
    /// The snapshot of this request is in the state, or could not be put in.
    case restored(request: UInt64, (any Error)?)
    /// A copy of the state at a digest point after the snapshot of this request; nil if the store
    /// was released.
    case copied(request: UInt64, SnapshotPlace, Encoding?)
}

/// Reports of lanes, from whichever thread serves them, for the thread that applies.
///
/// A lane that the applying thread serves itself reports while that thread hands out runs. The
/// thread then looks at the reports without a notification. Only a report at another time notifies
/// it.
// Sendable: everything that changes is guarded by the mutex.
final class LaneReports: Sendable {
    private struct Content {
        var reports: [LaneReport] = []
        /// Whether the thread that applies will look without a notification.
        var isExpected = false
    }

    private let state = Mutex(Content())
    private let notify: @Sendable () -> Void

    init(notify: @escaping @Sendable () -> Void) {
        self.notify = notify
    }

    /// From now on, the thread that applies looks without a notification, until it has looked once.
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
