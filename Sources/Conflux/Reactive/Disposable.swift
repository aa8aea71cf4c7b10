import Synchronization

/// Something that can be ended, such as an observation of a signal.
///
/// A disposable may be disposed on any thread, even on several at once; so it is `Sendable`. In
/// Swift 5 mode your own conforming types need not state it.
@preconcurrency
public protocol Disposable: Sendable {
    /// Whether this has been disposed.
    var isDisposed: Bool { get }

    /// Ends this. Later calls do nothing.
    func dispose()
}

/// A disposable made from a function.
public final class AnyDisposable: Disposable {
    /// Nil once disposed.
    private let function: Mutex<(@Sendable () -> Void)?>

    /// Makes a disposable that runs a function when it is disposed.
    ///
    /// - Parameter dispose: Called at most once: on the thread that disposes, or on the actor that it
    ///   belongs to. Released with its captures after the call. Releasing the disposable doesn't
    ///   call it.
    public convenience init(
        @_inheritActorContext _ dispose: @escaping @isolated(any) @Sendable () -> Void
    ) {
        self.init(on: dispose.isolation, vouching(for: dispose, as: (@Sendable () -> Void).self))
    }

    init(on actor: (any Actor)?, _ dispose: @escaping @Sendable () -> Void) {
        var function = dispose
        if let executor = Executor.of(actor) {
            function = { executor.run(dispose) }
        }
        self.function = Mutex(function)
    }

    /// Makes a disposable that runs nothing when it is disposed.
    public convenience init() {
        self.init(on: nil) {}
    }

    /// Whether ``dispose()`` has been called; true already while the function runs.
    public var isDisposed: Bool { function.withLock { $0 == nil } }

    /// Runs the function, unless that has begun before.
    public func dispose() {
        let function = function.withLock { $0.take() }
        function?()
    }
}

/// A disposable that gets to know later what it disposes. It ends an observation, too.
final class LateDisposable: Disposable {
    private let observation: Observation
    private let other = Mutex<(any Disposable)?>(nil)

    init(of observation: Observation = Observation()) {
        self.observation = observation
    }

    var isDisposed: Bool { !observation.isActive }

    /// Takes what is to be disposed, and disposes it at once if this was disposed before.
    func become(_ other: any Disposable) {
        self.other.withLock { $0 = other }
        // Asked outside of the lock: it may release the owner, which may dispose of this.
        if !observation.isActive { dispose() }
    }

    func dispose() {
        observation.end()
        other.withLock { $0.take() }?.dispose()
    }
}

/// Disposes what was added to it when it is disposed or deinitialised.
///
/// ```swift
/// final class Screen {
///     private let scope = DisposableScope()
///
///     func show(_ text: Signal<String>) {
///         scope += text.observe { print($0) }  // until the screen is gone
///     }
/// }
/// ```
public final class DisposableScope: Disposable {
    private struct Members {
        static let countToSweepAtMin = 64

        var disposables: [any Disposable]
        /// At this count the scope drops members that have been disposed elsewhere. A scope that
        /// lives long thus holds at most twice as many as are active, or this many.
        var countToSweepAt = countToSweepAtMin

        /// Takes all members out if there are enough for a sweep.
        mutating func takeCrowd() -> [any Disposable] {
            guard disposables.count >= countToSweepAt else { return [] }
            return exchange(&disposables, with: [])
        }

        /// Puts back what a sweep has left, in front of what was added meanwhile.
        mutating func putBack(_ active: [any Disposable]) {
            disposables.insert(contentsOf: active, at: 0)
            countToSweepAt = max(2 * active.count, Self.countToSweepAtMin)
        }
    }

    /// Nil once disposed.
    private let members: Mutex<Members?>

    /// Makes a scope of some disposables.
    ///
    /// - Parameter disposables: Disposed with the scope, in this order.
    public init(_ disposables: some Sequence<any Disposable>) {
        members = Mutex(Members(disposables: Array(disposables)))
    }

    /// Makes an empty scope.
    public convenience init() {
        self.init([any Disposable]())
    }

    deinit {
        dispose()
    }

    /// Whether ``dispose()`` has been called.
    public var isDisposed: Bool { members.withLock { $0 == nil } }

    /// Disposes what was added, in the order added; what is added from now on is disposed at once.
    public func dispose() {
        let members = members.withLock { $0.take() }
        for disposable in members?.disposables ?? [] { disposable.dispose() }
    }

    /// Adds a disposable to this scope.
    ///
    /// - Parameter disposable: Disposed with the scope, or at once if the scope is disposed. Not
    ///   retained if it is disposed already.
    public func add(disposable: any Disposable) {
        if disposable.isDisposed { return }
        let crowd = members.withLock { members -> [any Disposable]? in
            members?.disposables.append(disposable)
            return members?.takeCrowd()
        }
        guard let crowd else { return disposable.dispose() }
        if crowd.isEmpty { return }
        // Asking a disposable may run user code, so this happens outside the lock.
        let active = crowd.filter { !$0.isDisposed }
        let isActive = members.withLock { $0?.putBack(active) != nil }
        guard !isActive else { return }
        for disposable in active { disposable.dispose() }
    }

    /// Adds a disposable to a scope.
    ///
    /// - Parameters:
    ///   - scope: What to add to.
    ///   - disposable: As in ``add(disposable:)``.
    public static func += (scope: DisposableScope, disposable: any Disposable) {
        scope.add(disposable: disposable)
    }
}

extension DisposableScope? {
    /// Adds a disposable to a scope, if there is one.
    ///
    /// - Parameters:
    ///   - scope: What to add to. If it is nil, nothing happens.
    ///   - disposable: As in ``DisposableScope/add(disposable:)``.
    public static func += (scope: Self, disposable: any Disposable) {
        scope?.add(disposable: disposable)
    }
}
