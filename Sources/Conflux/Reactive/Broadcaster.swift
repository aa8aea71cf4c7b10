import Dispatch
import Synchronization

/// Tells observers values, each once, all in one order, with no lock held meanwhile.
///
/// **Problem.** Any thread may send at any time, also from inside an observer, and observers come
/// and go meanwhile. Calling them under a lock would give the order for free, and deadlocks too.
///
/// **Design.** The first sender becomes the deliverer. Whoever sends while there is one leaves the
/// value, together with the observers of that moment, in `waiting` and returns; the deliverer goes
/// on until nothing waits.
///
///     idle ──send──▶ delivering ──nothing waits──▶ idle
///                     │      ▲
///        reaches an   │      │ its first value
///        observer in  ▼      │ has returned
///        its first   parked ─┘ (that thread is the deliverer now)
///
/// An observer of a variable gets its first value on the thread that observes. Later values must
/// not overtake that one. So a deliverer that reaches such an observer leaves the rest of its work
/// with it, and the thread that observes goes on with it afterwards. No deliverer ever waits.
///
/// **Bound.** At most `waitingCountMax` deliveries wait, and the deliverer has at most as many in
/// hand. At the bound senders wait, except threads that run the user code of some lane or delivery
/// (``ThreadMark``): somebody may be waiting for those. They exceed the bound instead. And as an
/// observer may be waiting for any other thread too, a sender that has waited for a second in vain
/// lets its value in, so that such a line grows by one value a second and thread.
///
/// - `Held` is what the lock guards beside: the latest value of a variable, nothing for a sink.
@usableFromInline
final class Broadcaster<Value, Held>: Sendable {
    /// A value, and who was observing when it was sent.
    @usableFromInline
    struct Delivery {
        @usableFromInline let value: Value
        @usableFromInline let observers: [Observer<Value>]

        @inlinable
        init(value: Value, observers: [Observer<Value>]) {
            self.value = value
            self.observers = observers
        }
    }

    /// Deliveries in the order of their sending, and how far they have got.
    @usableFromInline
    struct Work {
        @usableFromInline var deliveries: [Delivery]
        @usableFromInline var deliveryIndex = 0
        @usableFromInline var observerIndex = 0

        @inlinable
        init(deliveries: [Delivery], observerIndex: Int = 0) {
            self.deliveries = deliveries
            self.observerIndex = observerIndex
        }
    }

    @usableFromInline
    enum Phase {
        case idle
        case delivering
        /// The thread that shows the observer its first value is to go on with the work.
        case parked(Work, at: Observer<Value>)
    }

    /// `Broadcaster.state` guards it. What leaves it is released outside the lock, since that may
    /// run a `deinit` of the user.
    @usableFromInline
    struct State: @unchecked Sendable {
        @usableFromInline var held: Held
        /// *Use*: who is told the next value, in the order in which they began.
        @usableFromInline var observers: [Observer<Value>] = []
        @usableFromInline var phase = Phase.idle
        /// *Invariant*: empty while idle.
        @usableFromInline var waiting: [Delivery] = []
        /// *Use*: senders at the bound. *Invariant*: empty while fewer than the bound wait.
        @usableFromInline var sendersAtBound: [DispatchSemaphore] = []

        init(held: Held) {
            self.held = held
        }
    }

    /// What a sender does after it left the lock: it alone has this.
    @usableFromInline
    enum Turn: @unchecked Sendable {
        // Sendable: made under the lock for the one thread that held it.
        case returns
        case delivers([Observer<Value>])
        case waits(DispatchSemaphore)
    }

    /// Carries a value out of the lock to the one thread that held it.
    @usableFromInline
    struct Handover<Content>: @unchecked Sendable {
        @usableFromInline let content: Content

        @inlinable
        init(_ content: Content) {
            self.content = content
        }
    }

    @usableFromInline let state: Mutex<State>

    /// How many deliveries may wait for the deliverer.
    @inlinable static var waitingCountMax: Int { 1024 }

    init(holding held: Held) {
        state = Mutex(State(held: held))
    }

    /// What is held.
    @inlinable
    var held: Held {
        state.withLock { Handover($0.held) }.content
    }

    // MARK: Sending

    /// Holds something, and tells everyone who observes now.
    ///
    /// - Parameters:
    ///   - value: What to tell.
    ///   - held: What to hold, from the same moment on.
    @inlinable
    func send(_ value: Value, holding held: Held) {
        var exchanged = held
        var mayExceedBound = false
        while true {
            switch enqueue(value, holding: &exchanged, mayExceedBound: mayExceedBound) {
            case .returns: return
            case .delivers(let observers): return deliver(value, to: observers)
            case .waits(let space): mayExceedBound = Self.isInVain(space)
            }
        }
    }

    /// Waits for space, for as long as that is worth it.
    ///
    /// - Returns: Whether none came.
    @usableFromInline
    static func isInVain(_ space: DispatchSemaphore) -> Bool {
        space.wait(timeout: .now() + LaneLimits.stillnessMax) == .timedOut
    }

    /// Takes the deliverer's role, or leaves the value to the one who has it.
    ///
    /// - Parameters:
    ///   - value: What to tell.
    ///   - held: What to hold; what was held, afterwards. Unchanged if the sender is to wait and
    ///     try again.
    ///   - mayExceedBound: Whether the sender has waited for long enough.
    /// - Returns: What is left for the sender to do.
    @inlinable
    func enqueue(_ value: Value, holding held: inout Held, mayExceedBound: Bool) -> Turn {
        state.withLock { state in
            if state.observers.isEmpty {
                swap(&state.held, &held)
                return .returns
            }
            if case .idle = state.phase {
                swap(&state.held, &held)
                state.phase = .delivering
                return .delivers(state.observers)
            }
            if state.waiting.count >= Self.waitingCountMax, !mayExceedBound,
                ThreadMark.current.pointee.lanes == 0
            {
                let space = DispatchSemaphore(value: 0)
                state.sendersAtBound.append(space)
                return .waits(space)
            }
            swap(&state.held, &held)
            state.waiting.append(Delivery(value: value, observers: state.observers))
            return .returns
        }
    }

    /// Delivers one value without storing it anywhere, and then what came meanwhile.
    @inlinable
    func deliver(_ value: Value, to observers: [Observer<Value>]) {
        let mark = ThreadMark.current
        mark.pointee.lanes += 1
        defer { mark.pointee.lanes -= 1 }
        for index in observers.indices {
            while !observers[index].receive(value) {
                let work = Work(
                    deliveries: [Delivery(value: value, observers: observers)],
                    observerIndex: index)
                if park(work, at: observers[index]) { return }
            }
        }
        if let work = nextWork() { deliver(work) }
    }

    /// Delivers until nothing waits or an observer is in its first value.
    @usableFromInline
    func deliver(_ first: Work) {
        var next: Work? = first
        while var work = next {
            while work.deliveryIndex < work.deliveries.count {
                let delivery = work.deliveries[work.deliveryIndex]
                while work.observerIndex < delivery.observers.count {
                    let observer = delivery.observers[work.observerIndex]
                    while !observer.receive(delivery.value) {
                        if park(work, at: observer) { return }
                    }
                    work.observerIndex += 1
                }
                work.deliveryIndex += 1
                work.observerIndex = 0
            }
            next = nextWork()
        }
    }

    /// Takes what waits, or ends the deliverer's role if nothing does.
    @inlinable
    func nextWork() -> Work? {
        let (work, senders) = state.withLock { state -> (Handover<Work?>, [DispatchSemaphore]) in
            if state.waiting.isEmpty {
                state.phase = .idle
                return (Handover(nil), [])
            }
            let work = Work(deliveries: state.waiting)
            let senders = state.sendersAtBound
            state.waiting = []
            state.sendersAtBound = []
            return (Handover(work), senders)
        }
        for sender in senders { sender.signal() }
        return work.content
    }

    /// Leaves the deliverer's role to the thread that is showing an observer its first value.
    ///
    /// - Returns: Whether that thread has the role now; false if it is done with the first value.
    @usableFromInline
    func park(_ work: Work, at observer: Observer<Value>) -> Bool {
        let work = Handover(work)
        return state.withLock { state in
            guard observer.isStarting else { return false }
            state.phase = .parked(work.content, at: observer)
            return true
        }
    }

    // MARK: Observing

    /// Tells a function every value from now on.
    ///
    /// - Parameters:
    ///   - observation: For how long.
    ///   - send: The function.
    ///   - firstValue: Makes what the function is told at once, on this thread, of what is held at
    ///     the moment when it begins; nil if there is no such value.
    /// - Returns: What ends it.
    func add(
        _ observation: Observation, _ send: @escaping @Sendable (Value) -> Void,
        firstValue: ((Held) -> Value)? = nil
    ) -> any Disposable {
        let observer = Observer(observation, send, isStarting: firstValue != nil)
        let begin = state.withLock { state in
            let before = state.observers
            state.observers.append(observer)
            return Handover((held: state.held, before: before))
        }.content
        if let firstValue {
            let mark = ThreadMark.current
            mark.pointee.lanes += 1
            observer.receiveFirst(firstValue(begin.held))
            if let work = start(observer) { deliver(work) }
            mark.pointee.lanes -= 1
        }
        for other in begin.before { other.closeIfOrphaned() }
        // No weak reference to the observer: that would slow every delivery to it. Until this
        // disposable removes it, it is in the list, and so its identity is its own.
        let identity = ObjectIdentifier(observer)
        return AnyDisposable { [weak self] in self?.remove(identity) }
    }

    /// Ends the time in which an observer is told by the thread that observes.
    ///
    /// - Returns: The work that a deliverer left with it meanwhile.
    private func start(_ observer: Observer<Value>) -> Work? {
        state.withLock { state in
            observer.start()
            guard case .parked(let work, let parking) = state.phase, parking === observer else {
                return Handover<Work?>(nil)
            }
            state.phase = .delivering
            return Handover(work)
        }.content
    }

    private func remove(_ observer: ObjectIdentifier) {
        let removed = state.withLock { state -> Handover<Observer<Value>?> in
            let index = state.observers.firstIndex { ObjectIdentifier($0) == observer }
            return Handover(index.map { state.observers.remove(at: $0) })
        }
        withExtendedLifetime(removed) {}
    }
}

/// One function that a broadcaster tells its values.
@usableFromInline
final class Observer<Value>: Sendable {
    private let starting: Atomic<Bool>
    @usableFromInline let observation: Observation
    @usableFromInline let send: @Sendable (Value) -> Void

    init(
        _ observation: Observation, _ send: @escaping @Sendable (Value) -> Void, isStarting: Bool
    ) {
        self.observation = observation
        self.send = send
        starting = Atomic(isStarting)
    }

    /// Whether the first value is being shown, so that other values must wait. Becomes false once,
    /// under the broadcaster's lock.
    @usableFromInline
    var isStarting: Bool { starting.load(ordering: .acquiring) }

    func start() { starting.store(false, ordering: .releasing) }

    /// Shows the first value, on the thread that observes.
    func receiveFirst(_ value: Value) {
        if observation.isActive { send(value) }
    }

    /// Tells a value, unless the observation has ended.
    ///
    /// - Returns: False if the value has to wait because the first one is being shown.
    @inlinable
    func receive(_ value: Value) -> Bool {
        guard observation.isActive else {
            observation.close()
            return true
        }
        guard !isStarting else { return false }
        send(value)
        return true
    }

    func closeIfOrphaned() {
        if observation.isOrphaned { observation.close() }
    }
}
