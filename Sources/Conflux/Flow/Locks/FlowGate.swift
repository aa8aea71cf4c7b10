import ConfluxThreads
import Dispatch
import Synchronization

/// Pauses the flow of a scope. It does what its ``FlowGateMachine`` says.
///
/// The thread that released a lock resumes the parked dispatches, one after the other. If there are
/// many, a queue takes over.
///
/// Dispatches that were made before a lock was taken have their places in the lanes ahead of all
/// that the holder dispatches. To ensure this, a dispatch that found the gate open is counted until
/// it has its place. While any dispatch is counted, the holder's dispatches wait.
// Sendable: all state is in a mutex, except for atomic copies of parts of it.
package final class FlowGate: Sendable {
    /// A dispatch. It calls `placed` once it has its places in the lanes, and before it serves
    /// them.
    typealias Job = @Sendable (_ placed: () -> Void) -> Void

    private struct Content {
        var machine = FlowGateMachine<Job>()
        var locks: [UInt64: FlowLock.Reference] = [:]
        /// Bounds the length of each line.
        var room = Room(countMax: FlowGate.parkedMax)
    }

    /// How many dispatches may wait in one line. Beyond that, a dispatching thread that may wait
    /// does so.
    package static let parkedMax = 65_536

    private let state = Mutex(Content())
    /// A copy of the machine's `isClosed`, which is read before each dispatch.
    private let closed = Atomic(false)
    /// How many dispatches found the gate open, or may pass it, and have no place yet. A dispatch
    /// counts itself and then reads `closed`. A thread that takes a lock sets `closed` and then
    /// reads this count. So at least one of the two sees the other.
    private let passing = Atomic(0)
    private let lockCount = Atomic<UInt64>(0)

    /// Whether a dispatch may have to wait, or has to get in line behind others.
    @inline(__always)
    var isClosed: Bool { closed.load(ordering: .relaxed) }

    /// Whether every dispatch that found the gate open has its place.
    private var isQuiet: Bool { passing.load(ordering: .sequentiallyConsistent) == 0 }

    /// The lock that is in force.
    var lockInForce: FlowLock? {
        state.withLock { state in state.machine.lockInForce.flatMap { state.locks[$0] } }?.lock
    }

    /// Whether a lock has been taken and not released.
    func isHeld(_ id: UInt64) -> Bool { state.withLock { $0.machine.isHeld(id) } }

    /// Runs a dispatch now, or as soon as nothing pauses it.
    ///
    /// - Parameters:
    ///   - holder: The lock under which it is dispatched, if any.
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
        guard let place, !place.wait(for: Room.stillnessMax) else { return }
        state.withLock { $0.room.widen(at: $0.machine.parkedCount) }
    }

    /// Runs a dispatch that is counted. The count ends when the dispatch has its place.
    private func run(_ job: Job) {
        var isPlaced = false
        job {
            if isPlaced { return }
            isPlaced = true
            leave()
        }
        if !isPlaced { leave() }
    }

    /// Ends the count of one dispatch. The last one resumes the dispatches that waited for that.
    private func leave() {
        let left = passing.subtract(1, ordering: .sequentiallyConsistent).newValue
        if left == 0, closed.load(ordering: .sequentiallyConsistent) { drain() }
    }

    /// Gives out the number of a lock that is about to be taken.
    func number() -> UInt64 { lockCount.add(1, ordering: .relaxed).newValue }

    /// Takes a lock, behind the locks that are already held.
    func take(_ id: UInt64, _ lock: FlowLock.Reference) {
        state.withLock { state in
            state.machine.take(id)
            state.locks[id] = lock
            closed.store(true, ordering: .sequentiallyConsistent)
        }
    }

    /// Releases a lock, and resumes the dispatches that waited for it. Does nothing if it has been
    /// released.
    func release(_ id: UInt64) {
        let places = state.withLock { state in
            state.machine.release(id)
            // The threads that wait for room may continue now, however much is parked.
            return state.locks.removeValue(forKey: id) == nil ? [] : state.room.free(at: 0)
        }
        for place in places { place.open() }
        drain()
    }

    /// How many jobs the thread that released a lock resumes itself. A queue resumes the rest.
    private static let jobsAtOnceMax = 1_024

    /// Resumes the dispatches that may pass, unless another thread is doing that.
    private func drain() {
        let isMine = state.withLock { state in
            let isMine = state.machine.beginDraining(isQuiet: isQuiet)
            closed.store(state.machine.isClosed, ordering: .sequentiallyConsistent)
            return isMine
        }
        if isMine { goOnDraining() }
    }

    /// Resumes the dispatches that may pass. Called only by the thread that drains.
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
            // As in a lane: this thread must not wait for other threads, since they may wait for
            // it.
            mark.pointee.lanes += 1
            mark.neededByOthers { job {} }
            mark.pointee.lanes -= 1
        }
        DispatchQueue.global().async { self.goOnDraining() }
    }
}
