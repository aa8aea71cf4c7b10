import Synchronization

/// The line in which the values of a sink or a variable reach their observers: each value once, all in one
/// order, with no lock held while observers run.
///
/// A thread that sends enters the lane and calls the observers. If another thread is in there with its own value, or if
/// the thread is itself inside of an observer, it leaves its value in the line. Otherwise it takes its turn, as a thread
/// does that dispatches to a busy store (``DispatchTurn``). So when the last of several senders returns, every value
/// has been delivered.
///
/// **Invariants.**
/// 1. Only the thread that serves the lane calls observers, in the order in which the values were sent.
///    So no observer is called twice at the same time.
/// 2. A value reaches those who observed when it was sent, except those disposed since.
/// 3. Observers run in the scope and under the flow lock of the thread that sent the value
///    (``SenderContext``), whichever thread delivers it. For a first value, these are those of the
///    observing thread. Other task-local values stay with their threads.
/// 4. Observing and disposing take constant time, and sending copies no list of observers.
///
/// **The list.** Observers are linked in the order in which they began, and numbered. The thread that delivers
/// follows the list without a lock, up to the newest number at the time of sending. Other threads
/// only append meanwhile. What is disposed meanwhile is unlinked in its turn.
///
/// **First values.** An observer of a variable gets its first value on the observing thread, and later
/// values must not overtake that one. So they are kept (``EarlyValues``), and follow in the lane once it has returned.
///
/// Nothing here is generic, since generic code that isn't specialized takes several times as long.
/// ``Broadcaster`` knows the values.
@usableFromInline
class ObserverLane: Lane, @unchecked Sendable {
    // Sendable: the lane's mutex guards these. It also excludes overlapping accesses.
    @exclusivity(unchecked) @usableFromInline final var list = ObserverList()
    /// Whether the thread that serves the lane is calling observers with its own value. *Use*: no other thread waits for
    /// its turn then, since an observer may be waiting for it.
    @exclusivity(unchecked) @usableFromInline final var isOwnValue = false
    /// Whether nothing will be sent any more, as far as is known.
    @exclusivity(unchecked) private final var isOver = false

    /// How many values may wait for those who deliver before sending threads wait with them.
    static var waitingMax: Int { 1024 }

    init() {
        super.init(executor: .immediate, scope: nil, waitingMax: Self.waitingMax)
    }

    deinit {
        for observer in list.unlinkAll() { observer.forget() }
    }

    /// Runs a function under the lane's mutex.
    @inlinable
    final func locked<Result>(_ body: () -> Result) -> Result {
        control.withLock { _ in
            // Only this thread has the result.
            nonisolated(unsafe) let result = body()
            return result
        }
    }

    /// Whether there are observers. Changed under the mutex.
    private let isListed = Atomic(false)
    /// Whether there are observers. Read without the mutex.
    final var isObserved: Bool { isListed.load(ordering: .acquiring) }

    // MARK: Sending

    /// What a sender finds.
    @usableFromInline
    enum Turn {
        case nobodyObserves
        case delivers(Link, upTo: Int, UnsafeMutablePointer<ThreadMark>)
        case othersDeliver
    }

    /// Enters the lane if it is free and there are observers.
    ///
    /// - Parameter hold: Called under the mutex, unless others deliver.
    /// - Returns: What the sender is to do.
    @inlinable
    final func begin(_ hold: () -> Void) -> Turn {
        control.withLock { control in
            // Only this thread has the turn.
            nonisolated(unsafe) var turn = Turn.nobodyObserves
            if let first = list.first {
                let mark = ThreadMark.current
                guard !mark.pointee.isWithholding, control.machine.enterIfFree(by: mark.thread)
                else { return .othersDeliver }
                mark.pointee.lanes += 1
                isOwnValue = true
                turn = .delivers(first, upTo: list.number, mark)
            }
            hold()
            return turn
        }
    }

    /// Leaves the lane that this thread has entered.
    @inlinable
    final func end(_ mark: UnsafeMutablePointer<ThreadMark>) {
        mark.pointee.lanes -= 1
        noteDelivery()
        let isLeft = control.withLock { control in
            isOwnValue = false
            return control.machine.leaveEntered()
        }
        if !isLeft { goOn(mark) }
    }

    /// Delivers a value in its turn.
    ///
    /// - Parameters:
    ///   - hold: Called under the mutex when the value gets its place.
    ///   - tell: Calls the observers from one on, up to a number, with the value.
    @usableFromInline
    final func deliverInTurn(
        holding hold: () -> Void, _ tell: @escaping (Link, _ number: Int) -> Void
    ) {
        let (mark, sender) = (ThreadMark.current, SenderContext.current)
        // The value is handed from thread to thread, and used by one at a time.
        nonisolated(unsafe) let tell = tell
        func job() -> LaneJob {
            hold()
            let number = list.number
            return .work { [self] _ in
                noteDelivery()
                guard let first = locked({ list.first }) else { return }
                sender.run { tell(first, number) }
            }
        }
        if mark.pointee.isWithholding, let withholding = mark.pointee.withholding {
            return control.withLock { control in
                if withholding.begins(self) {
                    append(.hold(withholding), to: &control, by: mark.thread)
                }
                append(job(), to: &control, by: mark.thread)
            }
        }
        var places = Reservation()
        places.place(job(), in: self, mayTurn: !isOwnValue, mark)
        places.serve(mark)
    }

    /// Says that the lane moves.
    @inlinable
    final func noteDelivery() {
        count.store(count.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }

    // MARK: Observing

    /// Appends an observer.
    ///
    /// - Parameters:
    ///   - observer: Called with the values sent from now on.
    ///   - read: Called under the mutex, to read what belongs to this moment.
    final func append(_ observer: Observer, _ read: () -> Void = {}) {
        let others = locked {
            read()
            list.append(observer)
            isListed.store(true, ordering: .releasing)
            return (list.nextInTurn(), list.nextInTurn())
        }
        others.0?.disposeIfOrphaned()
        others.1?.disposeIfOrphaned()
        // A new observer learns it if nothing will be sent.
        if let end = observer.observation.sourceEnd, locked({ isOver }) { end() }
    }

    /// Says whether anything will be sent. If nothing will, observers that need to know it learn that.
    final func watch(isOver: Bool) {
        let hooks = locked {
            self.isOver = isOver
            return isOver ? list.observers.compactMap(\.observation.sourceEnd) : []
        }
        for hook in hooks { hook() }
    }

    /// Unlinks an observer, now or behind the delivery that may be calling it.
    final func remove(_ observer: Observer) {
        let unlinked = control.withLock { control -> Observer? in
            guard observer.isLinked else { return nil }
            observer.isLinked = false
            guard control.machine.isBusy else { return unlink(observer) }
            let job = LaneJob.work { [self] _ in locked { unlink(observer) }.forget() }
            // As if by the thread that serves the lane, so that it does this itself.
            append(job, to: &control, by: control.machine.server)
            return nil
        }
        unlinked?.forget()
    }

    /// Takes an observer out of the list. Called under the mutex.
    private func unlink(_ observer: Observer) -> Observer {
        defer { isListed.store(list.first != nil, ordering: .releasing) }
        return list.unlink(observer)
    }
}

/// The lane of a sink's or a variable's observers.
///
/// - `Held` is what the mutex guards, too: the latest value of a variable, nothing for a sink.
@usableFromInline
final class Broadcaster<Value, Held>: ObserverLane, @unchecked Sendable {
    // Sendable: the lane's mutex guards it.
    @exclusivity(unchecked) @usableFromInline var current: Held

    init(holding held: Held) {
        current = held
        super.init()
    }

    /// What is held.
    @inlinable
    var held: Held { locked { current } }

    /// Holds something, and delivers a value to all current observers.
    ///
    /// - Parameters:
    ///   - value: What to deliver.
    ///   - held: What to hold, from the same moment on.
    @inlinable
    func send(_ value: Value, holding held: Held) {
        // Holds the former value after the exchange. It is released last, outside the lock.
        var exchanged = held
        switch begin({ exchange(&exchanged) }) {
        case .nobodyObserves: break
        case .delivers(let first, let number, let mark):
            tell(value, from: first, upTo: number)
            end(mark)
        case .othersDeliver:
            deliverInTurn(holding: { exchange(&exchanged) }) {
                self.tell(value, from: $0, upTo: $1)
            }
        }
    }

    /// Exchanges what is held, under the lock.
    @inlinable
    func exchange(_ held: inout Held) {
        // A value without a size has the address of the whole object.
        if MemoryLayout<Held>.size > 0 { swap(&current, &held) }
    }

    /// Calls the observers with a value: from one on, up to a number.
    @inlinable
    func tell(_ value: Value, from first: Link, upTo number: Int) {
        var link: Link? = first
        while let present = link {
            // The list keeps its observers during a delivery.
            link = present._withUnsafeGuaranteedRef { observer -> Link? in
                if observer.number > number { return nil }
                unsafeDowncast(observer, to: FunctionObserver<Value>.self).receive(value)
                return observer.next.load(ordering: .acquiring)
            }
        }
    }

    /// Calls a function with every value from now on.
    ///
    /// - Parameters:
    ///   - observation: Says for how long.
    ///   - send: The function.
    /// - Returns: A disposable that ends it.
    func add(_ observation: Observation, _ send: @escaping (Value) -> Void) -> any Disposable {
        let observer = FunctionObserver(observation, send, of: self)
        append(observer)
        return observer
    }
}

extension Broadcaster where Held == Value {
    /// Calls a function with what is held, at once and on this thread, and then with every value.
    ///
    /// - Parameters:
    ///   - observation: Says for how long.
    ///   - send: The function.
    /// - Returns: A disposable that ends it.
    func addWithFirstValue(
        _ observation: Observation, _ send: @escaping (Value) -> Void
    ) -> any Disposable {
        let (mark, early) = (ThreadMark.current, EarlyValues<Value>())
        let observer = FunctionObserver(observation, send, of: self, early)
        var first: Value?
        append(observer) { first = current }
        mark.pointee.lanes += 1
        if let first { observer.receiveNow(first) }
        mark.pointee.lanes -= 1
        if early.endIfEmpty(for: observer) { return observer }
        var places = Reservation()
        places.place(
            .work { _ in early.deliver(to: observer) }, in: self, mayTurn: !isOwnValue, mark)
        places.serve(mark)
        return observer
    }
}
