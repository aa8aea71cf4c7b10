import ConfluxThreads
import Dispatch
import Synchronization

/// Decides which thread delivers the values of a sink or a variable to their observers: each value
/// once, all in one order, with no lock held while observers run.
///
/// **Problem.** Any thread may send at any time, also from inside an observer, and observers come
/// and go meanwhile. Calling them under a lock would give the order for free, and deadlocks too.
///
/// **Design.** At most one thread at a time is the deliverer. A sender that finds none takes this
/// role. A thread that sends meanwhile leaves its value in `waiting` and returns.
///
///     idle ──send──▶ delivering ──nothing waits──▶ idle
///                     │  ▲  │ ▲
///        reaches an   │  │  │ │ what it owes is delivered:
///        observer in  ▼  │  ▼ │ a sender that waits takes the role, or a queue
///        its first   parked: the observing thread takes the role when its first value returns
///
/// **Invariants.**
/// 1. Only the deliverer calls observers, and it takes values in the order in which they were sent.
///    So no observer is called twice at the same time.
/// 2. A value reaches those who observed when it was sent, except those disposed since.
/// 3. The deliverer holds no lock while it calls observers, and never waits.
/// 4. A call of `send` returns even if other threads send for ever. The deliverer owes its own value
///    and, while it delivers a value that it owes, what observers send on its thread. When it has
///    delivered these, the next sender that may wait relieves it. Without relief it delivers at
///    most `shareMax` more values, and a queue delivers the rest.
/// 5. Observers run in the scope and under the flow lock of the thread that sent the value
///    (``SenderContext``), whichever thread delivers it. For a first value, these are those of the
///    observing thread. Other task-local values stay with their threads.
/// 6. Observing and disposing take constant time, and sending copies no list of observers.
///
/// **Relief.** A sender that finds a deliverer without debts adds its value and waits for the
/// role: until the current value is delivered, or for at most a second. So when the last of
/// several senders returns, every value has been delivered. Threads that run the user code of some
/// lane or delivery (``ThreadMark``) never wait, as another thread may be waiting for them. A
/// queue takes over where only such threads send.
///
/// **The list.** Observers are linked in the order in which they began, and numbered. The deliverer
/// follows the list without a lock, up to the newest number at the time of sending. Other threads
/// only append meanwhile; what is disposed meanwhile is unlinked between two values.
///
/// **First values.** An observer of a variable gets its first value on the observing thread. Later
/// values must not overtake that one. So a deliverer that reaches such an observer parks its value
/// there, and the observing thread becomes the deliverer when its first value returns.
///
/// **Bound.** At most `waitingCountMax` values wait. At the bound, senders that may wait do so
/// until half of the values are delivered; the others exceed the bound. An observer may be waiting
/// for any thread, so a sender that has waited for a second adds its value all the same. The excess
/// grows by one value a second and thread.
///
/// Nothing here is generic, since generic code that isn't specialized takes several times as long.
/// ``Broadcaster`` knows the values.
@usableFromInline
class Deliverer: @unchecked Sendable {
    // Sendable: `state` is all there is. A subclass guards what it adds by the same lock.

    /// A value that its sender doesn't deliver at once.
    @usableFromInline
    struct Delivery {
        /// Calls the observers from one on, up to a number, with the value. Stops at an observer
        /// that is in its first value, and returns it.
        let tell: (Link, _ number: Int) -> Link?
        /// The number of the newest observer to call.
        let number: Int
        let sender: SenderContext
        /// Whether the deliverer must deliver it before it returns.
        let isOwed: Bool
    }

    @usableFromInline
    enum Phase {
        case idle
        /// The thread is nil if a queue has the role. `isOwed`: whether the current value is owed.
        case delivering(by: UnsafeMutablePointer<ThreadMark>?, isOwed: Bool)
        /// The thread on which the observer is in its first value will continue with this value.
        case parked(Delivery, at: Observer)
    }

    /// The sender that is to relieve the deliverer.
    enum Successor {
        case none
        case waits(UnsafeMutablePointer<ThreadMark>, Latch)
        /// Its wait timed out; no other thread is to wait for the current value.
        case hasGivenUp
    }

    /// `Deliverer.state` guards it. What leaves it is released outside the lock, since that may run
    /// a `deinit` of the user.
    @usableFromInline
    struct Content: @unchecked Sendable {
        @usableFromInline var list = ObserverList()
        @usableFromInline var phase = Phase.idle
        /// *Use*: whether there is something to do between two values. *Invariant*: true if values
        /// or disposed observers wait.
        @usableFromInline var hasWork = false
        /// *Invariant*: empty while idle.
        var waiting = Line<Delivery>()
        /// *Invariant*: the number of those in `waiting` that are owed.
        var owedCount = 0
        /// *Invariant*: none while idle, and while the deliverer owes a value.
        var successor = Successor.none
        /// *Use*: observers disposed during a delivery. *Invariant*: empty while idle.
        var disposed: [Observer] = []
        /// *Use*: senders at the bound. *Invariant*: empty while nothing waits.
        var sendersAtBound: [Latch] = []
        /// Whether nothing will be sent any more, as far as is known.
        var isOver = false

        /// Whether a sender that may wait is to relieve the deliverer.
        var needsSuccessor: Bool {
            guard case .delivering(_, isOwed: false) = phase, case .none = successor else {
                return false
            }
            return owedCount == 0
        }

        /// Whether the deliverer owes what a thread sends now.
        func isOwed(by mark: UnsafeMutablePointer<ThreadMark>) -> Bool {
            if case .delivering(mark, isOwed: true) = phase { true } else { false }
        }
    }

    @usableFromInline let state = Mutex(Content())

    /// How many values may wait for the deliverer.
    static var waitingCountMax: Int { 1024 }

    /// How many values the deliverer delivers besides those that it owes: all that may wait, and
    /// what exceeds the bound meanwhile.
    static var shareMax: Int { 2048 }

    /// How long a sender waits at most.
    static var patience: Duration { Room.stillnessMax }

    @usableFromInline
    init() {}

    deinit {
        for observer in locked({ $0.list.unlinkAll() }) { observer.forget() }
    }

    /// Reads or changes the state under the lock.
    @inlinable
    final func locked<Result>(_ body: (inout Content) -> Result) -> Result {
        state.withLock { state in
            // Only this thread has the result.
            nonisolated(unsafe) let result = body(&state)
            return result
        }
    }

    // MARK: Delivering

    /// What the deliverer has to do between two values.
    private struct Step {
        var delivery: Delivery?
        var first: Link?
        var isForQueue = false
        var successor: Latch?
        var unlinked: [Observer] = []
        var senders: [Latch] = []
    }

    /// Delivers the sender's own value from an observer on that was in its first value, and then
    /// continues.
    @usableFromInline
    final func goOn(
        _ mark: UnsafeMutablePointer<ThreadMark>, from obstacle: Link, upTo number: Int,
        _ tell: @escaping (Link, _ number: Int) -> Link?
    ) {
        let delivery = Delivery(tell: tell, number: number, sender: .current, isOwed: true)
        if deliver(delivery, from: obstacle) { goOn(mark) }
    }

    /// Delivers the waiting values that are owed, and a share of the rest.
    @usableFromInline
    final func goOn(_ mark: UnsafeMutablePointer<ThreadMark>) {
        var share = Self.shareMax
        while true {
            let step = takeNext(mark, share: &share)
            for sender in step.senders { sender.open() }
            for observer in step.unlinked { observer.forget() }
            if let successor = step.successor { return successor.open() }
            if step.isForQueue { return goOnElsewhere() }
            guard let delivery = step.delivery else { return }
            if let first = step.first, !deliver(delivery, from: first) { return }
        }
    }

    /// Continues on a queue of its own, which gets a thread even if all other queues are blocked.
    private func goOnElsewhere() {
        DispatchQueue(label: "conflux.signal").async { [self] in
            let mark = ThreadMark.current
            asDeliverer(mark) { goOn(mark) }
        }
    }

    private func takeNext(_ mark: UnsafeMutablePointer<ThreadMark>, share: inout Int) -> Step {
        locked { state in
            var step = Step()
            for observer in state.disposed { step.unlinked.append(state.list.unlink(observer)) }
            state.disposed = []
            if state.waiting.count <= Self.waitingCountMax / 2 {
                swap(&step.senders, &state.sendersAtBound)
            }
            let successor = state.successor
            state.successor = .none
            if case .waits(let mark, let relief) = successor {
                state.phase = .delivering(by: mark, isOwed: true)
                step.successor = relief
                return step
            }
            if state.owedCount == 0 { share -= 1 }
            if share < 0, !state.waiting.isEmpty {
                state.phase = .delivering(by: nil, isOwed: false)
                step.isForQueue = true
                return step
            }
            step.delivery = state.waiting.removeFirst()
            state.hasWork = !state.waiting.isEmpty
            guard let delivery = step.delivery else {
                state.phase = .idle
                return step
            }
            if delivery.isOwed { state.owedCount -= 1 }
            state.phase = .delivering(by: mark, isOwed: delivery.isOwed)
            step.first = state.list.first
            return step
        }
    }

    /// Delivers a value to the observers from one on, in the context of its sender.
    ///
    /// - Returns: False if the value is parked, and another thread has the role.
    private func deliver(_ delivery: Delivery, from first: Link) -> Bool {
        delivery.sender.run {
            var first = first
            while let obstacle = delivery.tell(first, delivery.number) {
                if park(delivery, at: obstacle.takeUnretainedValue()) { return false }
                first = obstacle
            }
            return true
        }
    }

    /// Leaves the deliverer's role to the thread on which an observer is in its first value.
    ///
    /// - Returns: Whether that thread has the role now; false if the first value has returned.
    private func park(_ delivery: Delivery, at observer: Observer) -> Bool {
        locked { state in
            guard observer.isStarting else { return false }
            state.phase = .parked(delivery, at: observer)
            return true
        }
    }

    // MARK: Observing

    /// Appends an observer.
    ///
    /// - Parameters:
    ///   - observer: Called with the values sent from now on, after its first value.
    ///   - read: Called under the lock, to read what belongs to this moment.
    final func append(_ observer: Observer, _ read: () -> Void) {
        let others = locked { state in
            read()
            state.list.append(observer)
            return (state.list.nextInTurn(), state.list.nextInTurn())
        }
        others.0?.disposeIfOrphaned()
        others.1?.disposeIfOrphaned()
    }

    /// Delivers an observer's first value, on this thread, and what is parked there meanwhile.
    final func deliverFirst(_ observer: Observer, _ tell: () -> Void) {
        let mark = ThreadMark.current
        asDeliverer(mark) {
            tell()
            guard let parked = start(observer, mark) else { return }
            if deliver(parked, from: .passUnretained(observer)) { goOn(mark) }
        }
    }

    /// Ends an observer's first value.
    ///
    /// - Returns: The value that a deliverer parked there meanwhile.
    private func start(
        _ observer: Observer, _ mark: UnsafeMutablePointer<ThreadMark>
    ) -> Delivery? {
        locked { state in
            observer.start()
            guard case .parked(let delivery, let parking) = state.phase, parking === observer else {
                return nil
            }
            state.phase = .delivering(by: mark, isOwed: delivery.isOwed)
            return delivery
        }
    }

    /// Says whether anything will be sent. If nothing will, observers that need to know it learn that.
    final func watch(isOver: Bool) {
        let hooks = locked { state -> [@Sendable () -> Void] in
            state.isOver = isOver
            return isOver ? state.list.observers.compactMap(\.observation.sourceEnd) : []
        }
        for hook in hooks { hook() }
    }

    /// Tells a new observer if nothing will be sent.
    final func tellIfOver(_ observation: Observation) {
        guard let end = observation.sourceEnd, locked({ $0.isOver }) else { return }
        end()
    }

    /// Unlinks an observer, now or after the delivery that may be calling it.
    final func remove(_ observer: Observer) {
        let unlinked = locked { state -> Observer? in
            guard observer.isLinked else { return nil }
            observer.isLinked = false
            if case .idle = state.phase { return state.list.unlink(observer) }
            state.disposed.append(observer)
            state.hasWork = true
            return nil
        }
        unlinked?.forget()
    }
}
