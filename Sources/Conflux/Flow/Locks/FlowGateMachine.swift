/// Decides which dispatches of a scope may pass, and in which order the others pass later.
///
/// A pure machine: its functions are told what happens, and return what the calling thread does
/// next. The ``FlowGate`` keeps it under a mutex, and acts on what it returns.
///
/// **Invariants.** The oldest lock is in force. Its holder's dispatches pass once the gate is
/// quiet, that is, once every dispatch that found the gate open has its place. A lock ends once it is
/// released and all that its holder dispatched has passed, so nothing comes in between. The
/// holder of a younger lock waits until that lock is in force. Everybody else waits until there is no
/// lock. Waiting dispatches are parked. They pass in the order of dispatch. One thread resumes them, one
/// after the other. Dispatches that come meanwhile wait behind them.
struct FlowGateMachine<Job> {
    struct Lock {
        let id: UInt64
        /// *Use*: what the holder dispatched and could not pass yet.
        fileprivate(set) var parked = Line<Job>()
        fileprivate(set) var isReleased = false
        fileprivate var hasEnded: Bool { isReleased && parked.isEmpty }
    }

    /// Oldest first.
    private(set) var locks: [Lock] = []
    /// *Use*: dispatches that wait until there is no lock.
    private(set) var parked = Line<Job>()
    /// Whether a thread is resuming parked jobs.
    private(set) var isDraining = false

    /// Whether a dispatch may have to wait, or has to get in line behind others.
    var isClosed: Bool { !locks.isEmpty || !parked.isEmpty || isDraining }

    /// The length of the longest line.
    var parkedCount: Int { locks.reduce(parked.count) { max($0, $1.parked.count) } }

    /// The lock that is in force.
    var lockInForce: UInt64? { locks.first?.id }

    /// Whether a lock has been taken and not released.
    func isHeld(_ id: UInt64) -> Bool { position(of: id) != nil }

    private func position(of held: UInt64?) -> Int? {
        locks.firstIndex { $0.id == held && !$0.isReleased }
    }

    /// Takes a lock, behind the locks that are already held.
    mutating func take(_ id: UInt64) {
        locks.append(Lock(id: id))
    }

    /// Releases a lock; does nothing if it has been released. The caller then drains the jobs that waited
    /// for it.
    mutating func release(_ id: UInt64) {
        guard let position = position(of: id) else { return }
        locks[position].isReleased = true
        if locks[position].hasEnded { locks.remove(at: position) }
    }

    /// Lets a dispatch pass, or parks it.
    ///
    /// - Parameters:
    ///   - job: The dispatch.
    ///   - holder: The lock under which it is dispatched, if any.
    ///   - isQuiet: Whether every dispatch that found the gate open has its place.
    /// - Returns: How many jobs are now parked in its line; nil if it passes.
    mutating func pass(_ job: Job, holding holder: UInt64?, isQuiet: Bool) -> Int? {
        if !isClosed { return nil }
        guard let position = position(of: holder) else {
            parked.append(job)
            return parked.count
        }
        if position == 0, locks[0].parked.isEmpty, !isDraining, isQuiet { return nil }
        locks[position].parked.append(job)
        return locks[position].parked.count
    }

    /// Makes the calling thread resume the jobs that may pass, unless another thread is doing that.
    ///
    /// - Returns: Whether the calling thread is to do it.
    mutating func beginDraining(isQuiet: Bool) -> Bool {
        guard !isDraining, mayResume(isQuiet) else { return false }
        isDraining = true
        return true
    }

    /// The next job that may pass, for the thread that drains. With nil, that thread stops
    /// draining.
    mutating func next(isQuiet: Bool) -> Job? {
        isDraining = mayResume(isQuiet)
        guard isDraining else { return nil }
        if locks.isEmpty { return parked.removeFirst() }
        defer { if locks[0].hasEnded { locks.removeFirst() } }
        return locks[0].parked.removeFirst()
    }

    /// Whether any parked job may pass: one of the holder's, or, without a lock, one of anybody's.
    private func mayResume(_ isQuiet: Bool) -> Bool {
        locks.isEmpty ? !parked.isEmpty : !locks[0].parked.isEmpty && isQuiet
    }
}
