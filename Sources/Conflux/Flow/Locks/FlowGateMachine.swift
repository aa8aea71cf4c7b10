/// Which dispatches of a scope may pass, and in which order the others do later.
///
/// A pure machine: its functions are told what happens, and say what the calling thread does next. The
/// ``FlowGate`` keeps it under a mutex and does that.
///
/// **Invariants.** Of several locks the oldest is in force. Its holder's dispatches pass, once the gate is
/// quiet: once all that found it open have their places. A younger lock's holder waits until that lock is in
/// force, and everybody else until there is no lock. What waits is parked, and passes in the order of
/// dispatch, a holder's before all others'. One thread resumes it, one dispatch after the other; what comes
/// meanwhile waits behind.
struct FlowGateMachine<Job> {
    struct Lock {
        let id: UInt64
        /// *Use*: what the holder dispatched before it could pass.
        fileprivate(set) var parked = Line<Job>()
    }

    /// Oldest first.
    private(set) var locks: [Lock] = []
    /// *Use*: what waits until there is no lock.
    private(set) var parked = Line<Job>()
    /// Whether a thread is resuming parked jobs.
    private(set) var isDraining = false

    /// Whether a dispatch may have to wait, or to stand behind others.
    var isClosed: Bool { !locks.isEmpty || !parked.isEmpty || isDraining }

    /// The length of the longest line.
    var parkedCount: Int { locks.reduce(parked.count) { max($0, $1.parked.count) } }

    /// The lock that is in force.
    var lockInForce: UInt64? { locks.first?.id }

    /// Whether a lock has been taken and has not ended.
    func isHeld(_ id: UInt64) -> Bool { locks.contains { $0.id == id } }

    /// Takes a lock, behind those that there are.
    mutating func take(_ id: UInt64) {
        locks.append(Lock(id: id))
    }

    /// Ends a lock; does nothing if it has ended. What waited for it is to be drained.
    mutating func release(_ id: UInt64) {
        guard let position = locks.firstIndex(where: { $0.id == id }) else { return }
        // What the holder dispatched and could not yet go comes before what comes later.
        parked.prepend(locks.remove(at: position).parked)
    }

    /// Lets a dispatch pass, or parks it.
    ///
    /// - Parameters:
    ///   - job: The dispatch.
    ///   - holder: The lock under which it is dispatched, if it is.
    ///   - isQuiet: Whether all that found the gate open have their places.
    /// - Returns: How many are parked in its line by then; nil if it passes.
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

    /// Has the calling thread resume what may pass, unless another one does.
    ///
    /// - Returns: Whether it does.
    mutating func beginDraining(isQuiet: Bool) -> Bool {
        guard !isDraining, mayResume(isQuiet) else { return false }
        isDraining = true
        return true
    }

    /// The next one that may pass, for the thread that drains; with nil it does so no more.
    mutating func next(isQuiet: Bool) -> Job? {
        isDraining = mayResume(isQuiet)
        guard isDraining else { return nil }
        return locks.isEmpty ? parked.removeFirst() : locks[0].parked.removeFirst()
    }

    /// Whether any parked job may pass: the holder's, or what waited until there is no lock.
    private func mayResume(_ isQuiet: Bool) -> Bool {
        locks.isEmpty ? !parked.isEmpty : !locks[0].parked.isEmpty && isQuiet
    }
}
