import Conflux
import Synchronization

/// What became of one commit in this node's stores.
///
/// Every store that a commit concerns gets its run; the commit is done when all of them have
/// reported. A store with an executor of its own reports from another thread.
// Sendable: everything that changes is guarded by the mutex.
final class CommitRecord: Sendable {
    private struct Progress {
        /// The runs that have not reported, and one more until all were handed out.
        var open = 1
        /// The failures of each entry, and in how many stores.
        var failures: [SequenceNumber: (count: Int, first: EntryFailure)] = [:]
        /// In how many stores an entry for a whole state was to be applied.
        var stores: [SequenceNumber: Int] = [:]
        /// The entries that this node dispatched.
        var own: [ClosedRange<SequenceNumber>] = []
        /// Those of them that a replica here took.
        var taken: [ClosedRange<SequenceNumber>] = []
    }

    let last: SequenceNumber
    let byteCount: Int
    let isCatchUp: Bool
    private let progress = Mutex(Progress())
    private let whenDone: @Sendable () -> Void

    /// Makes the record of a commit. `whenDone` is called once, when the last run has reported.
    init(
        last: SequenceNumber, byteCount: Int, isCatchUp: Bool,
        whenDone: @escaping @Sendable () -> Void
    ) {
        self.last = last
        self.byteCount = byteCount
        self.isCatchUp = isCatchUp
        self.whenDone = whenDone
    }

    /// One more run will report.
    func expectRun() {
        progress.withLock { $0.open += 1 }
    }

    /// Each of these entries goes to so many stores.
    func note(_ sequence: SequenceNumber, stores: Int) {
        progress.withLock { $0.stores[sequence] = stores }
    }

    /// These entries were dispatched by this node.
    func noteOwn(_ range: ClosedRange<SequenceNumber>) {
        progress.withLock { $0.own.append(range) }
    }

    func isOwn(_ sequence: SequenceNumber) -> Bool {
        progress.withLock { $0.own.contains { $0.contains(sequence) } }
    }

    /// Replicas here take these entries, which this node dispatched.
    func noteTaken(_ ranges: [ClosedRange<SequenceNumber>]) {
        progress.withLock { $0.taken += ranges }
    }

    /// The entries that this node dispatched and replicas here took.
    var taken: [ClosedRange<SequenceNumber>] { progress.withLock { $0.taken } }

    /// A run was committed.
    func report(_ failures: [(SequenceNumber, EntryFailure)]) {
        let isDone = progress.withLock { progress in
            for (sequence, failure) in failures {
                progress.failures[sequence, default: (0, failure)].count += 1
            }
            progress.open -= 1
            return progress.open == 0
        }
        if isDone { whenDone() }
    }

    /// All runs were handed out. If all of them have reported already, `whenDone` is not called:
    /// whoever seals goes through the line anyway.
    func seal() {
        progress.withLock { $0.open -= 1 }
    }

    /// Whether every run has reported.
    var isDone: Bool { progress.withLock { $0.open == 0 } }

    /// The entries that had no effect in any store here, once the commit is done.
    var failures: [(SequenceNumber, EntryFailure)] {
        progress.withLock { progress in
            progress.failures.compactMap { sequence, failure in
                failure.count >= progress.stores[sequence] ?? 1 ? (sequence, failure.first) : nil
            }
            .sorted { $0.0 < $1.0 }
        }
    }
}
