import ConfluxThreads
import Dispatch
import Synchronization

/// What pauses the flow of a scope: does what its ``FlowGateMachine`` says.
///
/// The thread that released a lock resumes one dispatch after the other; a queue takes over if there are many.
///
/// What had been dispatched before a lock was taken stands in its stores' lanes, ahead of all that the
/// holder dispatches: a dispatch that found the gate open is counted until it has its place, and as long as
/// one is, the holder's wait.
// Sendable: all is in a mutex, but for atomic copies of a part.
package final class FlowGate: Sendable {
    /// A dispatch. It calls what it gets once it has its place in its lanes, and before it serves them.
    typealias Job = @Sendable (_ placed: () -> Void) -> Void

    private struct Content {
        var machine = FlowGateMachine<Job>()
        var locks: [UInt64: FlowLock.Reference] = [:]
        /// How long each line may be.
        var room = Room(countMax: FlowGate.parkedMax)
    }

    /// How many dispatches may wait in one line before threads that may wait do so with them.
    package static let parkedMax = 65_536

    private let state = Mutex(Content())
    /// A copy of the machine's `isClosed`, looked at before each dispatch.
    private let closed = Atomic(false)
    /// How many dispatches found the gate open, or passed it, and have no place yet. A passer counts itself
    /// and then looks at `closed`; who takes a lock sets that and then looks here: one of the two sees the
    /// other.
    private let passing = Atomic(0)
    private let lockCount = Atomic<UInt64>(0)

    /// Whether a dispatch may have to wait, or to stand behind others.
    @inline(__always)
    var isClosed: Bool { closed.load(ordering: .relaxed) }

    /// Whether all that found the gate open have their places.
    private var isQuiet: Bool { passing.load(ordering: .sequentiallyConsistent) == 0 }

    /// The lock that is in force.
    var lockInForce: FlowLock? {
        state.withLock { state in state.machine.lockInForce.flatMap { state.locks[$0] } }?.lock
    }

    /// Whether a lock has been taken and has not ended.
    func isHeld(_ id: UInt64) -> Bool { state.withLock { $0.machine.isHeld(id) } }

    /// Whether what the current code dispatches waits for a lock that the same code has taken.
    ///
    /// - Parameter holder: The lock under which it is dispatched, if it is.
    /// - Returns: Whether it would wait for itself.
    func isPausedByCaller(holding holder: UInt64?) -> Bool {
        guard isClosed else { return false }
        // Let go outside the mutex: the last reference to a lock releases it.
        let locks = state.withLock { state in
            state.machine.locks.prefix { $0.id != holder }.map { state.locks[$0.id]?.lock }
        }
        let caller = FlowLock.Caller.current
        return locks.contains { $0?.taker == caller }
    }

    /// Runs a dispatch, now or when nothing pauses it any more.
    ///
    /// - Parameters:
    ///   - holder: The lock under which it is dispatched, if it is.
    ///   - job: Called once, on this thread or later, holding no lock.
    func pass(holding holder: UInt64?, _ job: @escaping Job) {
        passing.add(1, ordering: .sequentiallyConsistent)
        if !closed.load(ordering: .sequentiallyConsistent) { return run(job) }
        leave()
        let mayWait = ThreadMark.current.pointee.mayWait
        let (mayPass, place) = state.withLock { state -> (Bool, Latch?) in
            let parked = state.machine.pass(job, holding: holder, isQuiet: isQuiet)
            if let parked { return (false, mayWait ? state.room.place(behind: parked) : nil) }
            passing.add(1, ordering: .sequentiallyConsistent)
            return (true, nil)
        }
        if mayPass { return run(job) }
        wait(in: place)
    }

    private func wait(in place: Latch?) {
        guard let place, !place.wait(for: Room.stillnessMax) else {
            return
        }
        state.withLock { $0.room.widen(at: $0.machine.parkedCount) }
    }

    /// Runs a dispatch that is counted, until it has its place.
    private func run(_ job: Job) {
        var isPlaced = false
        job {
            if isPlaced { return }
            isPlaced = true
            leave()
        }
        if !isPlaced { leave() }
    }

    /// A dispatch that was counted has its place. The last one resumes what waited for that.
    private func leave() {
        let left = passing.subtract(1, ordering: .sequentiallyConsistent).newValue
        if left == 0, closed.load(ordering: .sequentiallyConsistent) { drain() }
    }

    /// A number for a lock that is to be taken.
    func number() -> UInt64 { lockCount.add(1, ordering: .relaxed).newValue }

    /// Takes a lock, behind those that there are.
    func take(_ id: UInt64, _ lock: FlowLock.Reference) {
        state.withLock { state in
            state.machine.take(id)
            state.locks[id] = lock
            closed.store(true, ordering: .sequentiallyConsistent)
        }
    }

    /// Ends a lock, and resumes what waited for it; does nothing if it has ended.
    func release(_ id: UInt64) {
        let places = state.withLock { state in
            state.machine.release(id)
            // What waits may continue now, also where it is much.
            return state.locks.removeValue(forKey: id) == nil ? [] : state.room.free(at: 0)
        }
        for place in places { place.open() }
        drain()
    }

    /// How many jobs the thread that released a lock resumes itself; a queue has the rest.
    private static let jobsAtOnceMax = 1_024

    /// Resumes what may pass, unless another thread does.
    private func drain() {
        let isMine = state.withLock { state in
            let isMine = state.machine.beginDraining(isQuiet: isQuiet)
            closed.store(state.machine.isClosed, ordering: .sequentiallyConsistent)
            return isMine
        }
        if isMine { goOnDraining() }
    }

    /// Resumes what may pass. Called by the one thread that drains.
    private func goOnDraining() {
        let mark = ThreadMark.current
        for _ in 0..<Self.jobsAtOnceMax {
            let (job, places) = state.withLock { state -> (Job?, [Latch]) in
                let job = state.machine.next(isQuiet: isQuiet)
                closed.store(state.machine.isClosed, ordering: .sequentiallyConsistent)
                return (job, state.room.free(at: state.machine.parkedCount))
            }
            for place in places { place.open() }
            guard let job else { return }
            // As in a lane: this thread must not wait for others, which may wait for it.
            mark.pointee.lanes += 1
            mark.neededByOthers { job {} }
            mark.pointee.lanes -= 1
        }
        DispatchQueue.global().async { self.goOnDraining() }
    }
}
