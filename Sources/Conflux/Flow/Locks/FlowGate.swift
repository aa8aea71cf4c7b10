import Dispatch
import Synchronization

/// What pauses the flow of a scope: the locks that are held, and the dispatches that are parked.
///
/// **Invariants.** Of several locks the oldest is in force. Its holder's dispatches pass. A younger lock's
/// holder waits until that lock is in force, and everybody else until there is no lock. The gate parks
/// what waits, and resumes it in the order of dispatch, a holder's before all others'. The thread that
/// released the lock resumes one dispatch after the other; a queue takes over if there are many. What
/// comes meanwhile waits behind them.
///
/// What had been dispatched before a lock was taken stands in its stores' lanes, ahead of all that the
/// holder dispatches: a dispatch that found the gate open is counted until it has its place, and as long as
/// one is, the holder's wait.
// Sendable: all is in a mutex, but for an atomic copy of a part.
package final class FlowGate: Sendable {
    /// A dispatch. It calls what it gets once it has its place in its lanes, and before it serves them.
    typealias Job = @Sendable (_ placed: () -> Void) -> Void

    private struct Hold {
        let id: UInt64
        let lock: @Sendable () -> FlowLock?
        /// *Use*: what the holder dispatched before the lock was in force.
        var parked = Line<Job>()
        /// *Use*: who waits until it is in force.
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private struct State {
        /// Oldest first.
        var holds: [Hold] = []
        var holdCount: UInt64 = 0
        /// *Use*: what waits until there is no lock.
        var parked = Line<Job>()
        /// Whether a thread is resuming parked jobs.
        var isDraining = false
        /// How long each line may be.
        var room = Room(countMax: FlowGate.parkedMax)

        var isClosed: Bool { !holds.isEmpty || !parked.isEmpty || isDraining }

        /// The length of the longest line.
        var parkedCount: Int { holds.reduce(parked.count) { max($0, $1.parked.count) } }
    }

    /// How many dispatches may wait in one line before threads that may wait do so with them.
    package static let parkedMax = 65_536

    private let state = Mutex(State())
    /// A copy of `State.isClosed`, looked at before each dispatch.
    private let closed = Atomic(false)
    /// How many dispatches found the gate open, or were let through, and have no place yet. A passer counts
    /// itself and then looks at `closed`; who takes a lock sets that and then looks here: one of the two sees
    /// the other.
    private let passing = Atomic(0)

    /// Whether a dispatch may have to wait, or to stand behind others.
    @inline(__always)
    var isClosed: Bool { closed.load(ordering: .relaxed) }

    /// The lock that is in force.
    var lockInForce: FlowLock? {
        let lock = state.withLock { $0.holds.first?.lock }
        return lock?()
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
        let (mayPass, place) = state.withLock { state -> (Bool, DispatchSemaphore?) in
            if !state.isClosed {
                passing.add(1, ordering: .sequentiallyConsistent)
                return (true, nil)
            }
            guard let position = state.holds.firstIndex(where: { $0.id == holder }) else {
                state.parked.append(job)
                return (false, mayWait ? state.room.place(behind: state.parked.count) : nil)
            }
            if position == 0, state.holds[0].parked.isEmpty, !state.isDraining,
                passing.load(ordering: .sequentiallyConsistent) == 0
            {
                passing.add(1, ordering: .sequentiallyConsistent)
                return (true, nil)
            }
            state.holds[position].parked.append(job)
            let count = state.holds[position].parked.count
            return (false, mayWait ? state.room.place(behind: count) : nil)
        }
        if mayPass { return run(job) }
        wait(in: place)
    }

    private func wait(in place: DispatchSemaphore?) {
        guard let place, place.wait(timeout: .now() + Room.stillnessMax) == .timedOut else {
            return
        }
        state.withLock { $0.room.widen(at: $0.parkedCount) }
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
    func number() -> UInt64 {
        state.withLock { state in
            state.holdCount += 1
            return state.holdCount
        }
    }

    /// Takes a lock, behind those that there are.
    ///
    /// - Parameters:
    ///   - id: Its number.
    ///   - lock: Gives the lock, while it lives.
    func take(_ id: UInt64, _ lock: @escaping @Sendable () -> FlowLock?) {
        state.withLock { state in
            state.holds.append(Hold(id: id, lock: lock))
            closed.store(true, ordering: .sequentiallyConsistent)
        }
    }

    /// Ends a lock, and resumes what waited for it; does nothing if it has ended.
    func release(_ id: UInt64) {
        let (waiters, places) = state.withLock { state in
            guard let position = state.holds.firstIndex(where: { $0.id == id }) else {
                return ([CheckedContinuation<Void, Never>](), [DispatchSemaphore]())
            }
            let hold = state.holds.remove(at: position)
            // What the holder dispatched and could not yet go comes before what comes later.
            state.parked.prepend(hold.parked)
            var waiters = hold.waiters
            if position == 0, !state.holds.isEmpty {
                waiters += state.holds[0].waiters
                state.holds[0].waiters = []
            }
            // What waits may go on now, also where it is much.
            return (waiters, state.room.free(at: 0))
        }
        for place in places { place.signal() }
        for waiter in waiters { waiter.resume() }
        drain()
    }

    /// How many jobs the thread that released a lock resumes itself; a queue has the rest.
    private static let jobsAtOnceMax = 1_024

    /// Resumes what may pass, unless another thread does.
    private func drain() {
        let isMine = state.withLock { state in
            if state.isDraining { return false }
            guard mayLetGo(state) else {
                closed.store(state.isClosed, ordering: .sequentiallyConsistent)
                return false
            }
            state.isDraining = true
            // Whoever comes now stands behind what is taken out.
            closed.store(true, ordering: .sequentiallyConsistent)
            return true
        }
        if isMine { goOnDraining() }
    }

    /// Resumes what may pass. Called by the one thread that drains.
    private func goOnDraining() {
        let mark = ThreadMark.current
        for _ in 0..<Self.jobsAtOnceMax {
            let (job, places) = state.withLock { state -> (Job?, [DispatchSemaphore]) in
                let job = nextJob(&state)
                state.isDraining = job != nil
                closed.store(state.isClosed, ordering: .sequentiallyConsistent)
                return (job, state.room.free(at: state.parkedCount))
            }
            for place in places { place.signal() }
            guard let job else { return }
            // As in a lane: this thread must not wait for others, which may wait for it.
            mark.pointee.lanes += 1
            mark.neededByOthers { job {} }
            mark.pointee.lanes -= 1
        }
        DispatchQueue.global().async { self.goOnDraining() }
    }

    /// Whether any job may pass: the holder's, once all that found the gate open has its place; or what
    /// waited until there is no lock.
    private func mayLetGo(_ state: borrowing State) -> Bool {
        if state.holds.isEmpty { return !state.parked.isEmpty }
        return !state.holds[0].parked.isEmpty
            && passing.load(ordering: .sequentiallyConsistent) == 0
    }

    /// The next job that may pass.
    private func nextJob(_ state: inout State) -> Job? {
        guard mayLetGo(state) else { return nil }
        if state.holds.isEmpty { return state.parked.removeFirst() }
        return state.holds[0].parked.removeFirst()
    }

    /// Whether a lock has been taken and has not ended.
    func isHeld(_ id: UInt64) -> Bool {
        state.withLock { $0.holds.contains { $0.id == id } }
    }

    /// Waits until a lock is in force, or has ended.
    func waitUntilInForce(_ id: UInt64) async {
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                guard let position = state.holds.firstIndex(where: { $0.id == id }), position > 0
                else { return false }
                state.holds[position].waiters.append(continuation)
                return true
            }
            if !mustWait { continuation.resume() }
        }
    }
}
