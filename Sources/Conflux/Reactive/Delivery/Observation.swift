import Synchronization

/// Whether an observer may still be called.
///
/// Each `observe` makes one and hands it up the chain of operators, so that the source, and every
/// executor on the way, can ask before they continue.
@usableFromInline
final class Observation: @unchecked Sendable {
    // Sendable: `owner` is only tested for existence, and the rest is.
    @usableFromInline let ended = Atomic<Bool>(false)
    @usableFromInline let isScoped: Bool
    @usableFromInline weak let owner: AnyObject?
    /// Runs a function behind the values that are on their way through an executor.
    typealias Relay = @Sendable (@escaping @Sendable () -> Void) -> Void

    private let whenSourceEnds: (@Sendable () -> Void)?
    /// *Use*: the end of the source follows its values through the executors. The last executor is first.
    /// *Invariant*: empty if nobody wants to know the end.
    private let relays = Mutex<[Relay]>([])
    /// What to dispose when the owner is gone.
    ///
    /// *Invariant*: nil without an owner. A producer may keep its send function, which has this
    /// observation, in what it produced; the two would keep each other for ever.
    private let production = Mutex<(any Disposable)?>(nil)

    /// Makes an observation that lasts until it is ended or its owner is deinitialised.
    ///
    /// - Parameters:
    ///   - owner: Not retained. If nil, the observation lasts until it is ended.
    ///   - whenSourceEnds: Called when the source says that it will send nothing more, holding no lock.
    init(owner: AnyObject? = nil, whenSourceEnds: (@Sendable () -> Void)? = nil) {
        self.whenSourceEnds = whenSourceEnds
        isScoped = owner != nil
        self.owner = owner
    }

    /// Whether the observer may be called.
    ///
    /// Ask outside of locks: testing the owner may release the last reference to it.
    @inlinable
    var isActive: Bool {
        !ended.load(ordering: .acquiring) && !(isScoped && owner == nil)
    }

    /// Whether the owner is gone and nobody has ended this yet.
    var isOrphaned: Bool {
        isScoped && owner == nil && !ended.load(ordering: .acquiring)
    }

    /// Keeps what a producer returned until the end, if there is an owner.
    func keep(_ production: any Disposable) {
        if isScoped { self.production.withLock { $0 = production } }
    }

    /// What the source calls when it will send nothing more; nil if the observer need not know.
    var sourceEnd: (@Sendable () -> Void)? {
        guard let whenSourceEnds else { return nil }
        return { [self] in
            let end = relays.withLock { $0 }.reduce(whenSourceEnds) { end, relay in { relay(end) } }
            end()
        }
    }

    /// Makes the end of the source pass an executor behind the values.
    func passEnd(through relay: @escaping Relay) {
        if whenSourceEnds != nil { relays.withLock { $0.append(relay) } }
    }

    /// Ends the observation: no call begins from here on.
    ///
    /// - Returns: Whether this was the first call.
    @discardableResult
    func end() -> Bool {
        guard !ended.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        if isScoped { _ = production.withLock { $0.take() } }
        return true
    }

    /// Ends the observation and disposes what was produced for an owner that is gone.
    func close() {
        let production = production.withLock { $0 }
        if end() { production?.dispose() }
    }
}

/// An observation of a producer: ends it and disposes what the producer returned.
final class Subscription: Disposable {
    private let observation: Observation
    private let production: any Disposable

    init(_ observation: Observation, to production: any Disposable) {
        self.observation = observation
        self.production = production
        observation.keep(production)
    }

    var isDisposed: Bool { !observation.isActive }

    func dispose() {
        if observation.end() { production.dispose() }
    }
}
