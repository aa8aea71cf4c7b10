import Synchronization

/// An observer: a link of the list, and the disposable that ends the observation.
///
/// The deliverer's lock guards the variables, unless their comments say otherwise. That also
/// excludes overlapping accesses, so that no check is needed.
@usableFromInline
class Observer: Disposable, @unchecked Sendable {
    @usableFromInline final let observation: Observation
    /// *Invariant*: set before the observer is linked.
    @exclusivity(unchecked) @usableFromInline final fileprivate(set) var number = 0
    /// *Use*: set under the lock, read by the deliverer without it.
    @usableFromInline final let next = Atomic<Link?>(nil)
    @exclusivity(unchecked) final fileprivate var previous: Link?
    /// Whether it hasn't been removed.
    @exclusivity(unchecked) final var isLinked = true
    @usableFromInline final let starting: Atomic<Bool>
    private weak let deliverer: Deliverer?

    init(_ observation: Observation, of deliverer: Deliverer, isStarting: Bool) {
        self.observation = observation
        self.deliverer = deliverer
        starting = Atomic(isStarting)
    }

    /// Whether the first value hasn't returned, so that other values must wait. Becomes false once,
    /// under the deliverer's lock.
    @inlinable
    final var isStarting: Bool { starting.load(ordering: .acquiring) }

    final func start() { starting.store(false, ordering: .releasing) }

    @usableFromInline
    final var isDisposed: Bool { !observation.isActive }

    @usableFromInline
    final func dispose() {
        observation.end()
        deliverer?.remove(self)
    }

    final func disposeIfOrphaned() {
        if observation.isOrphaned { dispose() }
    }

    /// Releases the observer's function. Call it after unlinking, outside the lock.
    func forget() {}
}

/// A function that is called with values. Only the deliverer's thread reads it, and it changes only
/// when no deliverer sees it any more.
@usableFromInline
final class FunctionObserver<Value>: Observer, @unchecked Sendable {
    @exclusivity(unchecked) @usableFromInline var send: ((Value) -> Void)?

    init(
        _ observation: Observation, _ send: @escaping (Value) -> Void, of deliverer: Deliverer,
        isStarting: Bool
    ) {
        self.send = send
        super.init(observation, of: deliverer, isStarting: isStarting)
    }

    /// Calls the function, unless the observation has ended.
    @inlinable
    func receive(_ value: Value) {
        if observation.isActive { send?(value) } else { dispose() }
    }

    override func forget() {
        send = nil
    }
}

/// An observer that the list keeps alive.
@usableFromInline
typealias Link = Unmanaged<Observer>

/// Observers in the order in which they began.
///
/// The deliverer's lock guards it. The deliverer follows `Observer.next` without the lock: others
/// only append meanwhile.
@usableFromInline
struct ObserverList {
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
