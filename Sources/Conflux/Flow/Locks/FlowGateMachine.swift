/// Decides which dispatches of a scope may pass, and in which order the others pass later.
///
/// A pure machine: its functions are told what happens, and return what the calling thread does
/// next. The ``FlowGate`` keeps it under a mutex, and acts on what it returns.
///
/// **Invariants.** The oldest lock is in force. Its holder's dispatches pass once the gate is
/// quiet, that is, once every dispatch that found the gate open has its place. The holder of a
/// younger lock waits until that lock is in force. Everybody else waits until there is no lock.
/// Waiting dispatches are parked. They pass in the order of dispatch, a holder's before all others.
/// One thread resumes them, one after the other. Dispatches that come meanwhile wait behind them.
struct FlowGateMachine<Job> {
    struct Lock {
        let id: UInt64
        /// *Use*: what the holder dispatched and could not pass yet.
        fileprivate(set) var parked = Line<Job>()
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

    /// Whether a lock has been taken and has not ended.
    func isHeld(_ id: UInt64) -> Bool { locks.contains { $0.id == id } }

    /// Takes a lock, behind the locks that are already held.
    mutating func take(_ id: UInt64) {
        locks.append(Lock(id: id))
    }

    /// Ends a lock; does nothing if it has ended. The caller then drains the jobs that waited for
    /// it.
    mutating func release(_ id: UInt64) {
        guard let position = locks.firstIndex(where: { $0.id == id }) else { return }
        // The holder's parked dispatches come before all others.
        parked.prepend(locks.remove(at: position).parked)
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
        guard let position = locks.firstIndex(where: { $0.id == holder }) else {
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
        return locks.isEmpty ? parked.removeFirst() : locks[0].parked.removeFirst()
    }

    /// Whether any parked job may pass: one of the holder's, or, without a lock, one of anybody's.
    private func mayResume(_ isQuiet: Bool) -> Bool {
        locks.isEmpty ? !parked.isEmpty : !locks[0].parked.isEmpty && isQuiet
    }
}
