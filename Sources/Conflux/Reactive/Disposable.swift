import Synchronization

/// Something that can be ended, such as an observation of a signal.
///
/// A disposable may be disposed on any thread, also on several at once: a conforming type of yours
/// has to bear that.
public protocol Disposable {
    /// Whether this has been disposed.
    var isDisposed: Bool { get }

    /// Ends this. Later calls do nothing.
    func dispose()
}

/// A disposable made from a function.
public final class AnyDisposable: Disposable, Sendable {
    private enum State {
        case active(@Sendable () -> Void)
        case disposed
    }

    private let state: Mutex<State>

    /// Makes a disposable that runs a function when it is disposed.
    ///
    /// - Parameter dispose: Called at most once, on the thread that disposes; released with what it
    ///   captures once called. Letting go of the disposable doesn't call it.
    @preconcurrency
    public init(_ dispose: @escaping @Sendable () -> Void) {
        state = Mutex(.active(dispose))
    }

    /// Makes a disposable that runs nothing when it is disposed.
    public convenience init() {
        self.init {}
    }

    /// Whether ``dispose()`` has been called; true already while the function runs.
    public var isDisposed: Bool {
        state.withLock { state in
            if case .disposed = state { true } else { false }
        }
    }

    /// Runs the function, unless that has begun before.
    public func dispose() {
        let previous = state.withLock { state in
            let previous = state
            state = .disposed
            return previous
        }
        if case .active(let dispose) = previous { dispose() }
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
public final class DisposableScope: Disposable, Sendable {
    private enum State {
        case active(Members)
        case disposed
    }

    /// What a scope disposes. A `Disposable` may be disposed on any thread by its contract.
    private struct Members: @unchecked Sendable {
        var disposables: [any Disposable]
        /// At this count the members that ended by themselves are forgotten, so that a scope that
        /// lives long holds at most twice what is active, or this many.
        var countToSweepAt = DisposableScope.countToSweepAtFirst
    }

    private static let countToSweepAtFirst = 64
    private let state: Mutex<State>

    /// Makes a scope of some disposables.
    ///
    /// - Parameter disposables: Disposed with the scope, in this order.
    public init(_ disposables: some Sequence<any Disposable>) {
        let members = Members(disposables: Array(disposables))
        state = Mutex(.active(members))
    }

    /// Makes a scope of some observations.
    ///
    /// - Parameter disposables: Disposed with the scope, in this order.
    @_disfavoredOverload
    public convenience init(_ disposables: some Sequence<any Disposable & Sendable>) {
        self.init(disposables.map { $0 as any Disposable })
    }

    /// Makes an empty scope.
    public convenience init() {
        self.init([any Disposable]())
    }

    deinit {
        dispose()
    }

    /// Whether ``dispose()`` has been called.
    public var isDisposed: Bool {
        state.withLock { state in
            if case .disposed = state { true } else { false }
        }
    }

    /// Disposes what was added, in the order added; what is added from now on is disposed at once.
    public func dispose() {
        let previous = state.withLock { state in
            let previous = state
            state = .disposed
            return previous
        }
        guard case .active(let members) = previous else { return }
        for disposable in members.disposables { disposable.dispose() }
    }

    /// Adds a disposable to this scope.
    ///
    /// - Parameter disposable: Disposed with the scope, or at once if that is disposed.
    public func add(disposable: any Disposable) {
        let added = Members(disposables: [disposable])
        let isActive = update { $0.disposables.append(contentsOf: added.disposables) }
        guard isActive else { return disposable.dispose() }
        sweep()
    }

    /// Forgets members that ended by themselves, once so many are here that it is worth it.
    private func sweep() {
        var crowd = Members(disposables: [])
        _ = update { members in
            guard members.disposables.count >= members.countToSweepAt else { return }
            swap(&members, &crowd)
        }
        // Asking a disposable may run code of the user, so the crowd is out while it goes on.
        let kept = Members(disposables: crowd.disposables.filter { !$0.isDisposed })
        guard !kept.disposables.isEmpty else { return }
        let isActive = update { members in
            members.disposables.insert(contentsOf: kept.disposables, at: 0)
            members.countToSweepAt = max(
                2 * kept.disposables.count, Self.countToSweepAtFirst)
        }
        guard !isActive else { return }
        for disposable in kept.disposables { disposable.dispose() }
    }

    /// Changes the members under the lock, unless the scope is disposed.
    ///
    /// - Returns: Whether the scope is still active.
    private func update(_ change: (inout Members) -> Void) -> Bool {
        state.withLock { state in
            guard case .active(var members) = state else { return false }
            // Leaves the array one owner, so that an append copies nothing.
            state = .disposed
            change(&members)
            state = .active(members)
            return true
        }
    }

    /// Adds a disposable to a scope.
    ///
    /// - Parameters:
    ///   - scope: What to add to.
    ///   - disposable: Disposed with the scope, or at once if that is disposed.
    public static func += (scope: DisposableScope, disposable: any Disposable) {
        scope.add(disposable: disposable)
    }
}

extension DisposableScope? {
    /// Adds a disposable to a scope, if there is one.
    ///
    /// - Parameters:
    ///   - scope: What to add to. If it is nil, the disposable is left alone.
    ///   - disposable: Disposed with the scope, or at once if that is disposed.
    public static func += (scope: Self, disposable: any Disposable) {
        scope?.add(disposable: disposable)
    }
}
