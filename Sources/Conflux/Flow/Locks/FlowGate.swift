import Dispatch
import Synchronization

/// What pauses the flow of a scope: the locks that are held, and the dispatches that wait for them.
///
/// **Invariants.** Of several locks the oldest is in force. What is dispatched by the holder of that one
/// goes its way; what a younger lock's holder dispatches waits until that lock is in force, and
/// everything else until there is none. What waits goes its way in the order in which it was
/// dispatched, but a holder's before all others', one after the other, by the thread that released the
/// lock and, if that is much, by a queue; what comes meanwhile waits behind it.
///
/// What had been dispatched before a lock was taken stands in its stores' lanes, ahead of all that the
/// holder dispatches: a dispatch that found the gate open is counted until it has its place, and as long as
/// one is, the holder's wait.
///
/// What takes a route to a log has no place in a lane, and may have to wait for room on its way. Nothing
/// here waits with it: where others' dispatches need the thread, a queue sends it off, and what takes a
/// route later stands behind it there.
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
        /// *Use*: what takes a route, and must not be waited for here.
        var routed = Line()
        /// Whether the queue has one of these.
        var isSendingOff = false
        /// *Use*: threads at the bound.
        var crowded: [DispatchSemaphore] = []

        var isPaused: Bool { !holds.isEmpty || !parked.isEmpty || isDraining }
        var isClosed: Bool { isPaused || isSendingOff }

        /// A place to wait in, if a line has become too long and this thread may wait.
        mutating func crowd(_ line: Line, mayWait: Bool) -> DispatchSemaphore? {
            guard line.count > FlowGate.parkedMax, mayWait else { return nil }
            let place = DispatchSemaphore(value: 0)
            crowded.append(place)
            return place
        }

        /// Who waits for room and needs to wait no more.
        mutating func uncrowd() -> [DispatchSemaphore] {
            if crowded.isEmpty { return [] }
            let longest = holds.reduce(max(parked.count, routed.count)) {
                max($0, $1.parked.count)
            }
            if longest > FlowGate.parkedMax { return [] }
            defer { crowded = [] }
            return crowded
        }
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
    /// Sends off what takes a route and must not be waited for.
    private let queue = DispatchQueue(label: "conflux.routes")

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
            if !state.isPaused {
                passing.add(1, ordering: .sequentiallyConsistent)
                return (true, nil)
            }
            guard let position = state.holds.firstIndex(where: { $0.id == holder }) else {
                state.parked.append(job)
                return (false, state.crowd(state.parked, mayWait: mayWait))
            }
            if position == 0, state.holds[0].parked.isEmpty, !state.isDraining,
                passing.load(ordering: .sequentiallyConsistent) == 0
            {
                passing.add(1, ordering: .sequentiallyConsistent)
                return (true, nil)
            }
            state.holds[position].parked.append(job)
            return (false, state.crowd(state.holds[position].parked, mayWait: mayWait))
        }
        if mayPass { return run(job) }
        wait(in: place)
    }

    /// Waits for room, and not for ever: whoever releases the lock may need this very thread.
    private func wait(in place: DispatchSemaphore?) {
        guard let place else { return }
        _ = place.wait(timeout: .now() + LaneLimits.stillnessMax)
    }

    /// Sends off what is past the gate and takes a route: on this thread, unless others' dispatches need it
    /// or what was to go before is still here.
    ///
    /// - Parameters:
    ///   - mayFail: Whether it doesn't wait on this thread, but fails, which it is to do.
    ///   - send: Called once, now or later, holding no lock. It may wait for room.
    func sendOff(mayFail: Bool, _ send: @escaping @Sendable () -> Void) {
        let mark = ThreadMark.current.pointee
        let isNeeded = mark.isNeeded
        // Others' dispatches are to wait, as they would have on their threads.
        if mayFail, !mark.isLettingGo { return send() }
        if !isNeeded, !isClosed { return send() }
        let (isFirst, place) = state.withLock { state -> (Bool?, DispatchSemaphore?) in
            guard isNeeded || state.isSendingOff else { return (nil, nil) }
            state.routed.append { _ in send() }
            let isFirst = !state.isSendingOff
            state.isSendingOff = true
            closed.store(true, ordering: .sequentiallyConsistent)
            // Without the line it would wait, too, until there is room.
            return (isFirst, state.crowd(state.routed, mayWait: !isNeeded))
        }
        guard let isFirst else { return send() }
        if isFirst { queue.async { self.goOnSendingOff() } }
        wait(in: place)
    }

    private func goOnSendingOff() {
        let mark = ThreadMark.current
        while true {
            let (job, places) = state.withLock { state in
                let job = state.routed.removeFirst()
                state.isSendingOff = job != nil
                closed.store(state.isClosed, ordering: .sequentiallyConsistent)
                return (job, state.uncrowd())
            }
            for place in places { place.signal() }
            guard let job else { return }
            // Who hears here of its end must not wait for another.
            mark.neededByOthers { job {} }
        }
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

    /// Lets go what may go. Called by the one thread that drains.
    private func goOnDraining() {
        let mark = ThreadMark.current
        for _ in 0..<Self.jobsAtOnceMax {
            let (job, places) = state.withLock { state -> (Job?, [DispatchSemaphore]) in
                let job = nextJob(&state)
                state.isDraining = job != nil
                closed.store(state.isClosed, ordering: .sequentiallyConsistent)
                return (job, state.uncrowd())
            }
            for place in places { place.signal() }
            guard let job else { return }
            // As in a lane: this thread must not wait for others, which may wait for it.
            mark.pointee.lanes += 1
            mark.neededByOthers(isLettingGo: true) { job {} }
            mark.pointee.lanes -= 1
        }
        DispatchQueue.global().async { self.goOnDraining() }
    }

    /// Whether anything may be let go: the holder's, once all that found the gate open has its place; or what
    /// waited until there is no lock.
    private func mayLetGo(_ state: borrowing State) -> Bool {
        if state.holds.isEmpty { return !state.parked.isEmpty }
        return !state.holds[0].parked.isEmpty
            && passing.load(ordering: .sequentiallyConsistent) == 0
    }

    /// What may be let go next.
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
