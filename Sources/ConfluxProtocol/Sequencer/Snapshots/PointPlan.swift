/// When one life of a store gets its next digest point. *Use*: a store is examined when entries for
/// it were logged, instead of all the time.
struct PointPlan: Sendable {
    /// The most digest points in one commit. Others follow in the next one.
    static let perCommitMax = 64

    /// Whether a digest point is due.
    private(set) var isDue = false
    /// Whether a snapshot is wanted regardless of its cost: the log is kept for it, or stopped
    /// replicas wait for it.
    private(set) var isWanted = false
    /// Whether a point is admitted and not in the log yet.
    private(set) var isAdmitted = false
    /// The size of the state, as last reported.
    private(set) var stateBytes: UInt64?
    /// The bytes of the entries that concerned the store up to its snapshot; nil if unknown, as
    /// after a start.
    private(set) var snapshotLoad: UInt64?
    /// The bytes of the whole log when a snapshot was last wanted because the log is kept for it.
    private(set) var keptLogBytes: UInt64 = 0

    mutating func fallDue() { isDue = true }

    /// A snapshot is wanted soon.
    mutating func want() {
        isDue = true
        isWanted = true
    }

    /// A snapshot is wanted because the log is kept for it.
    mutating func want(keeping logBytes: UInt64) {
        keptLogBytes = logBytes
        want()
    }

    mutating func postpone() { isDue = false }

    /// What prevented a wanted snapshot is gone.
    mutating func resume() { if isWanted { isDue = true } }

    mutating func admit() {
        isDue = false
        isAdmitted = true
    }

    mutating func land() { isAdmitted = false }

    mutating func hear(stateBytes: UInt64) { self.stateBytes = stateBytes }

    /// Starts to count here if it is unknown how much was logged since the snapshot.
    mutating func count(from load: UInt64) { if snapshotLoad == nil { snapshotLoad = load } }

    /// A snapshot is saved.
    mutating func take(load: UInt64) {
        snapshotLoad = load
        isWanted = false
    }

    /// The bytes of the entries since the snapshot, if `load` are the bytes up to a point.
    func load(sinceSnapshot load: UInt64) -> UInt64 { load - min(load, snapshotLoad ?? 0) }
}
