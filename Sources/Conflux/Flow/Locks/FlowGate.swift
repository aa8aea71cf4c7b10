import Dispatch
import Synchronization

/// What pauses the flow of a scope: the locks that are held, and the dispatches that wait for them.
///
/// **Invariants.** Of several locks the oldest is in force. What is dispatched by the holder of that one
/// goes its way; what a younger lock's holder dispatches waits until that lock is in force, and
/// everything else until there is none. What waits goes its way in the order in which it was
/// dispatched, one after the other, by the thread that released the lock and, if that is much, by a
/// queue; what comes meanwhile waits behind it.
///
/// What had been dispatched before a lock was taken stands in its stores' lanes, ahead of all that the
/// holder dispatches: a dispatch that found the gate open is counted until it has its place, and as long as
/// one is, the holder's wait.
// Sendable: all is in a mutex, but for an atomic copy of a part.
package final class FlowGate: Sendable {
    /// A dispatch. It calls what it gets once it has its place in its lanes, and before it serves them.
    typealias Job = @Sendable (_ placed: () -> Void) -> Void

    /// Jobs in their order; each is put in and taken out in constant time.
    private struct Line {
        private var incoming: [Job] = []
        /// The first one last.
        private var outgoing: [Job] = []

        var count: Int { incoming.count + outgoing.count }
        var isEmpty: Bool { count == 0 }

        mutating func append(_ job: @escaping Job) { incoming.append(job) }

        mutating func removeFirst() -> Job? {
            if outgoing.isEmpty {
                outgoing = incoming.reversed()
                incoming = []
            }
            return outgoing.popLast()
        }

        /// Puts what another line has before all that is here.
        mutating func prepend(_ other: Line) {
            outgoing += other.incoming.reversed()
            outgoing += other.outgoing
        }
    }

    private struct Hold {
        let id: UInt64
        let lock: @Sendable () -> FlowLock?
        /// *Use*: what the holder dispatched before the lock was in force.
        var parked = Line()
        /// *Use*: who waits until it is in force.
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private struct State {
        /// Oldest first.
        var holds: [Hold] = []
        var holdCount: UInt64 = 0
        /// *Use*: what waits until there is no lock.
        var parked = Line()
        /// Whether a thread has what is being let go.
        var isDraining = false
        /// *Use*: threads at the bound.
        var crowded: [DispatchSemaphore] = []

        var isClosed: Bool { !holds.isEmpty || !parked.isEmpty || isDraining }
    }

    /// How many dispatches may wait before other threads than those that serve a lane wait with them.
    package static let parkedMax = 65_536

    private let state = Mutex(State())
    /// A copy of `State.isClosed`, looked at before each dispatch.
    private let closed = Atomic(false)
    /// How many dispatches found the gate open, or were let through, and have no place yet. A passer counts
    /// itself and then looks at `closed`; who takes a lock sets that and then looks here: one of the two sees
    /// the other.
    private let passing = Atomic(0)

    /// Whether a dispatch may have to wait.
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
        let (mayPass, place) = state.withLock { state -> (Bool, DispatchSemaphore?) in
            if !state.isClosed {
                passing.add(1, ordering: .sequentiallyConsistent)
                return (true, nil)
            }
            let position = state.holds.firstIndex { $0.id == holder }
            if let position {
                if position == 0, state.holds[0].parked.isEmpty, !state.isDraining,
                    passing.load(ordering: .sequentiallyConsistent) == 0
                {
                    passing.add(1, ordering: .sequentiallyConsistent)
                    return (true, nil)
                }
                state.holds[position].parked.append(job)
                return (false, nil)
            }
            state.parked.append(job)
            guard state.parked.count > Self.parkedMax, ThreadMark.current.pointee.lanes == 0 else {
                return (false, nil)
            }
            let place = DispatchSemaphore(value: 0)
            state.crowded.append(place)
            return (false, place)
        }
        if mayPass { return run(job) }
        // Whoever releases the lock may need this very thread.
        if let place { _ = place.wait(timeout: .now() + LaneLimits.stillnessMax) }
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

    /// A dispatch that was counted has its place. The last one lets go what waited for that.
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

    /// Ends a lock, and lets go what waited for it; does nothing if it has ended.
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
            defer { state.crowded = [] }
            return (waiters, state.crowded)
        }
        for place in places { place.signal() }
        for waiter in waiters { waiter.resume() }
        drain()
    }

    /// How many jobs the thread that released a lock lets go itself; a queue has the rest.
    private static let jobsAtOnceMax = 1_024

    /// Lets go what may go, unless another thread does.
    private func drain() {
        let isMine = state.withLock { state in
            if state.isDraining { return false }
            state.isDraining = true
            return true
        }
        if isMine { goOnDraining() }
    }

    /// Lets go what may go. Called by the one thread that drains.
    private func goOnDraining() {
        let mark = ThreadMark.current
        for _ in 0..<Self.jobsAtOnceMax {
            let (job, places) = state.withLock { state -> (Job?, [DispatchSemaphore]) in
                let job = nextJob(&state)
                state.isDraining = job != nil
                closed.store(state.isClosed, ordering: .sequentiallyConsistent)
                guard state.parked.count <= Self.parkedMax else { return (job, []) }
                defer { state.crowded = [] }
                return (job, state.crowded)
            }
            for place in places { place.signal() }
            guard let job else { return }
            // As in a lane: this thread must not wait for others, which may wait for it.
            mark.pointee.lanes += 1
            job {}
            mark.pointee.lanes -= 1
        }
        DispatchQueue.global().async { self.goOnDraining() }
    }

    /// What may be let go next: the holder's, once all that found the gate open has its place; or what waited
    /// until there is no lock.
    private func nextJob(_ state: inout State) -> Job? {
        if state.holds.isEmpty { return state.parked.removeFirst() }
        if passing.load(ordering: .sequentiallyConsistent) > 0 { return nil }
        return state.holds[0].parked.removeFirst()
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
