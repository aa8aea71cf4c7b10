/// When one life of a store is digested. *Use*: a store is looked at when the log of it grew, not all
/// the time.
struct PointPlan: Sendable {
    /// How many digest points one commit has at most. Others follow in the next one.
    static let perCommitMax = 64

    /// Whether it is to be digested.
    private(set) var isDue = false
    /// Whether a snapshot is wanted whatever it takes: the log is kept for it, or replicas that stopped
    /// wait for it.
    private(set) var isWanted = false
    /// Whether its point is not in the log yet.
    private(set) var isAdmitted = false
    /// The size of the state, as it was last heard of.
    private(set) var stateBytes: UInt64?
    /// What concerned the store up to its snapshot, in bytes; not known after a start.
    private(set) var snapshotLoad: UInt64?
    /// The bytes of the whole log when the store was last digested because that is kept for it.
    private(set) var keptLogBytes: UInt64 = 0

    mutating func fallDue() { isDue = true }

    /// A snapshot is to be there soon.
    mutating func want() {
        isDue = true
        isWanted = true
    }

    /// The same, because the log is kept for it.
    mutating func want(keeping logBytes: UInt64) {
        keptLogBytes = logBytes
        want()
    }

    mutating func postpone() { isDue = false }

    /// What stood in the way of a snapshot that is wanted has gone.
    mutating func resume() { if isWanted { isDue = true } }

    mutating func admit() {
        isDue = false
        isAdmitted = true
    }

    mutating func land() { isAdmitted = false }

    mutating func hear(stateBytes: UInt64) { self.stateBytes = stateBytes }

    /// How much came since a snapshot is not known: it counts from here on.
    mutating func count(from load: UInt64) { if snapshotLoad == nil { snapshotLoad = load } }

    /// A snapshot is there.
    mutating func take(load: UInt64) {
        snapshotLoad = load
        isWanted = false
    }

    /// What concerned the store since its snapshot, of what concerned it up to a point.
    func load(sinceSnapshot load: UInt64) -> UInt64 { load - min(load, snapshotLoad ?? 0) }
}
