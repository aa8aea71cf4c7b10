import ConfluxThreads
import Synchronization

/// An observer: a link of the list, and the disposable that ends the observation.
///
/// The lane's mutex guards the variables, unless their comments say otherwise. That also
/// excludes overlapping accesses, so that no check is needed.
@usableFromInline
class Observer: Disposable, @unchecked Sendable {
    @usableFromInline final let observation: Observation
    /// *Invariant*: set before the observer is linked.
    @exclusivity(unchecked) @usableFromInline final fileprivate(set) var number = 0
    /// *Use*: set under the lock, read without it by the thread that delivers.
    @usableFromInline final let next = Atomic<Link?>(nil)
    @exclusivity(unchecked) final fileprivate var previous: Link?
    /// Whether it hasn't been removed.
    @exclusivity(unchecked) final var isLinked = true
    private weak let lane: ObserverLane?

    init(_ observation: Observation, of lane: ObserverLane) {
        self.observation = observation
        self.lane = lane
    }

    @usableFromInline
    final var isDisposed: Bool { !observation.isActive }

    @usableFromInline
    final func dispose() {
        observation.end()
        lane?.remove(self)
    }

    final func disposeIfOrphaned() {
        if observation.isOrphaned { dispose() }
    }

    /// Releases the observer's function. Call it after unlinking, outside the lock.
    func forget() {}
}

/// A function that is called with values. Only the thread that delivers reads it, and it changes only
/// when no such thread sees it any more.
@usableFromInline
final class FunctionObserver<Value>: Observer, @unchecked Sendable {
    @exclusivity(unchecked) @usableFromInline var send: ((Value) -> Void)?

    /// Values that must wait for the first one; nil if there is no first value.
    private let early: EarlyValues<Value>?
    /// Whether the first value hasn't returned.
    @usableFromInline let isStarting: Atomic<Bool>

    init(
        _ observation: Observation, _ send: @escaping (Value) -> Void, of lane: ObserverLane,
        _ early: EarlyValues<Value>? = nil
    ) {
        self.send = send
        self.early = early
        isStarting = Atomic(early != nil)
        super.init(observation, of: lane)
    }

    /// Calls the function, unless the observation has ended, or keeps the value until the first one has returned.
    @inlinable
    func receive(_ value: Value) {
        if isStarting.load(ordering: .acquiring), isKept(value) { return }
        receiveNow(value)
    }

    /// Calls the function, unless the observation has ended.
    @inlinable
    func receiveNow(_ value: Value) {
        if observation.isActive { send?(value) } else { dispose() }
    }

    @usableFromInline
    func isKept(_ value: Value) -> Bool { early?.keep(value) ?? false }

    override func forget() {
        send = nil
    }
}

/// What is sent while an observer is being called with its first value.
final class EarlyValues<Value>: Sendable {
    // Sendable: each value is with one thread at a time.
    private struct Content: @unchecked Sendable {
        var values: [(value: Value, sender: SenderContext)] = []
        var isOver = false
    }

    private let content = Mutex(Content())
    private let latch = Latch()

    /// Keeps a value until the first one has returned. At the bound, a thread that is inside of nothing but this
    /// delivery waits for that, for a second at most.
    ///
    /// - Returns: Whether it was kept; false if the first value has returned.
    func keep(_ value: Value) -> Bool {
        let sent = (value, SenderContext.current)
        let (isKept, isAtBound) = content.withLock { content in
            if !content.isOver { content.values.append(sent) }
            return (!content.isOver, content.values.count > ObserverLane.waitingMax)
        }
        if isKept, isAtBound, ThreadMark.current.pointee.mayWaitInDelivery {
            latch.wait(for: Room.stillnessMax)
        }
        return isKept
    }

    /// The first value has returned.
    ///
    /// - Returns: Whether nothing was kept, and nothing will be.
    func endIfEmpty(for observer: FunctionObserver<Value>) -> Bool {
        content.withLock { content in
            if content.values.isEmpty { end(&content, observer) }
            return content.isOver
        }
    }

    /// Calls the observer with what was kept. Called in the lane, so that nothing else is delivered meanwhile.
    func deliver(to observer: FunctionObserver<Value>) {
        let values = content.withLock { content in
            end(&content, observer)
            return content.values
        }
        for (value, sender) in values { sender.run { observer.receiveNow(value) } }
    }

    private func end(_ content: inout Content, _ observer: FunctionObserver<Value>) {
        content.isOver = true
        observer.isStarting.store(false, ordering: .releasing)
        latch.open()
    }
}

/// An observer that the list keeps alive.
@usableFromInline
typealias Link = Unmanaged<Observer>

/// Observers in the order in which they began.
///
/// The lane's mutex guards it. The thread that delivers follows `Observer.next` without it: others
/// only append meanwhile.
@usableFromInline
struct ObserverList: ~Copyable {
    /// *Invariant*: each observer in the list has one more reference, which the list owns.
    @usableFromInline private(set) var first: Link?
    private var last: Link?
    /// *Use*: the next observer to check for an owner that is gone.
    private var inTurn: Link?
    /// The number of the newest observer.
    @usableFromInline private(set) var number = 0

    mutating func append(_ observer: Observer) {
        let link = Link.passRetained(observer)
        number += 1
        observer.number = number
        observer.previous = last
        if let last {
            last.takeUnretainedValue().next.store(link, ordering: .releasing)
        } else {
            first = link
        }
        last = link
    }

    /// Takes an observer out. Not during a delivery.
    ///
    /// - Returns: The observer, with the reference that the list owned.
    mutating func unlink(_ observer: Observer) -> Observer {
        let link = Link.passUnretained(observer)
        let next = observer.next.load(ordering: .relaxed)
        if let previous = observer.previous?.takeUnretainedValue() {
            previous.next.store(next, ordering: .relaxed)
        } else {
            first = next
        }
        if let next {
            next.takeUnretainedValue().previous = observer.previous
        } else {
            last = observer.previous
        }
        if inTurn?.toOpaque() == link.toOpaque() { inTurn = next }
        return link.takeRetainedValue()
    }

    /// The observers, oldest first.
    var observers: [Observer] {
        Array(
            sequence(state: first) { link -> Observer? in
                let observer = link?.takeUnretainedValue()
                link = observer?.next.load(ordering: .relaxed)
                return observer
            })
    }

    /// Takes all observers out.
    mutating func unlinkAll() -> [Observer] {
        var unlinked: [Observer] = []
        while let first = first?.takeUnretainedValue() {
            first.isLinked = false
            unlinked.append(unlink(first))
        }
        return unlinked
    }

    /// The observer whose turn it is to be checked.
    mutating func nextInTurn() -> Observer? {
        let observer = (inTurn ?? first)?.takeUnretainedValue()
        inTurn = observer?.next.load(ordering: .relaxed)
        return observer
    }
}
