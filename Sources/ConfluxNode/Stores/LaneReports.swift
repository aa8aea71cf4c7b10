import ConfluxProtocol
import Synchronization

/// A report of a store's lane on its work.
enum LaneReport: Sendable {
    /// A run is committed. These of its entries had no effect.
    case ran(serial: UInt64, [NoEffect])
    /// The snapshot of this request was decoded, or could not be.
    case decoded(request: UInt64, Result<ReplicaLane.Putting, any Error>)
    /// The snapshot of this request was put in, or could not be.
    case restored(request: UInt64, (any Error)?)
    /// A copy of the state at a digest point after the snapshot of this request; nil if the store was
    /// released.
    case copied(request: UInt64, SnapshotPlace, Encoding?, version: UInt32)
}

/// Collects the reports of lanes, from any thread, for the thread that applies.
///
/// While the thread that applies hands out runs, it looks for reports itself afterwards. Only reports
/// at other times notify it.
// Sendable: the mutex guards all mutable state.
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

    /// From now on, the thread that applies looks for reports itself, once.
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
            return exchange(&state.reports, with: [])
        }
    }
}
