import Synchronization

/// Whether an observer is to be called any more.
///
/// One is made by each `observe` and handed up the chain of operators, so that the sender at its
/// root, and every executor on the way, can ask before they go on.
@usableFromInline
final class Observation: @unchecked Sendable {
    // Sendable: `owner` is only tested for existence, and the rest is.
    private let ended = Atomic<Bool>(false)
    private let isScoped: Bool
    private weak let owner: AnyObject?
    private let production: Production?

    /// Makes an observation that goes on until it is ended.
    init() {
        isScoped = false
        owner = nil
        production = nil
    }

    /// Makes an observation that goes on until it is ended or its owner is deinitialised.
    ///
    /// - Parameters:
    ///   - owner: Not retained.
    ///   - production: What to dispose when ``close()`` finds the owner gone. An observation without
    ///     an owner doesn't hold its production: a producer that keeps its send function in what it
    ///     produced would then never be released.
    init(owner: AnyObject, production: Production) {
        isScoped = true
        self.owner = owner
        self.production = production
    }

    /// Whether the observer may be called.
    ///
    /// Ask outside locks: a look at the owner may be what releases it last.
    @usableFromInline
    var isActive: Bool {
        !ended.load(ordering: .acquiring) && !(isScoped && owner == nil)
    }

    /// Whether the owner is gone and nobody has closed this yet.
    var isOrphaned: Bool {
        isScoped && owner == nil && !ended.load(ordering: .acquiring)
    }

    /// Ends the observation: no call begins from here on.
    func end() {
        ended.store(true, ordering: .releasing)
    }

    /// Ends the observation and releases what was produced for an owner that is gone.
    @usableFromInline
    func close() {
        end()
        production?.dispose()
    }
}

/// What a producer returned, which may be asked to end before the producer has returned it.
final class Production: Sendable {
    private enum State {
        case starting
        case running(Product)
        case disposed
    }

    /// A `Disposable` may be disposed on any thread by its contract.
    private struct Product: @unchecked Sendable {
        let disposable: any Disposable
    }

    private let state = Mutex(State.starting)

    /// Hands over what the producer returned; it is disposed at once if the end came first.
    func run(_ disposable: any Disposable) {
        let product = Product(disposable: disposable)
        let isDisposed = state.withLock { state in
            if case .disposed = state { return true }
            state = .running(product)
            return false
        }
        if isDisposed { disposable.dispose() }
    }

    func dispose() {
        let previous = state.withLock { state in
            let previous = state
            state = .disposed
            return previous
        }
        if case .running(let product) = previous { product.disposable.dispose() }
    }
}

/// What `observe` returns: ends the observation and disposes what was produced for it.
final class Subscription: Disposable, Sendable {
    private let observation: Observation
    private let production: Production

    init(observation: Observation, production: Production) {
        self.observation = observation
        self.production = production
    }

    var isDisposed: Bool { !observation.isActive }

    func dispose() {
        observation.end()
        production.dispose()
    }
}
