/// Describes what a target does with a value, independent of any signal.
///
/// ```swift
/// extension Label {
///     var shout: Binder<String> {
///         Binder(target: self) { label, text in label.text = text.uppercased() }
///     }
/// }
///
/// signal.bind(to: label.shout)
/// ```
public struct Binder<Value> {
    private let bind: (Signal<Value>, Executor) -> any Disposable

    /// Makes a binder.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - binding: Called with the target and each value, on the executor of the binding. If it belongs to an
    ///     actor, it is called on that actor.
    @_disfavoredOverload
    public init<Target: AnyObject & Sendable>(
        target: Target,
        @_inheritActorContext binding: @escaping @isolated(any) @Sendable (Target, Value) -> Void
    ) {
        self.init(
            target, on: binding.isolation,
            vouching(for: binding, as: (@Sendable (Target, Value) -> Void).self))
    }

    init<Target: AnyObject>(
        _ target: Target, on actor: (any Actor)?, _ binding: @escaping (Target, Value) -> Void
    ) {
        bind = { [weak target] signal, executor in
            if let target { return signal.bind(to: target, on: executor, of: actor, binding) }
            let ended = AnyDisposable()
            ended.dispose()
            return ended
        }
    }

    /// Binds a signal to the target, until that is deinitialised.
    ///
    /// - Parameters:
    ///   - signal: Whose values to bind.
    ///   - executor: Where the binding runs.
    /// - Returns: A disposable that ends the binding earlier; disposed already if the target is
    ///   gone.
    @discardableResult
    public func bind(
        signal: Signal<Value>, on executor: Executor = .mainThread
    ) -> any Disposable {
        bind(signal, executor)
    }
}

extension Signal {
    /// Binds the values to the target of a binder, until that is deinitialised.
    ///
    /// - Parameters:
    ///   - binder: What to do with them.
    ///   - executor: Where to do it.
    /// - Returns: A disposable that ends the binding earlier; disposed already if the target is
    ///   gone.
    @discardableResult
    public func bind(
        to binder: Binder<Value>, on executor: Executor = .mainThread
    ) -> any Disposable {
        binder.bind(signal: self, on: executor)
    }

    /// Binds the values to a target on the main actor, until the target is deinitialised.
    ///
    /// Values that are sent on main reach the target at once, as with ``Executor/mainThread``.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - binding: Called with the target and each value.
    /// - Returns: A disposable that ends the binding earlier.
    @_disfavoredOverload
    @discardableResult
    public func bind<Target: AnyObject & Sendable>(
        to target: Target, binding: @escaping @MainActor (Target, Value) -> Void
    ) -> any Disposable {
        bindOnMain(to: target, binding)
    }

    func bindOnMain<Target: AnyObject>(
        to target: Target, _ binding: @escaping @MainActor (Target, Value) -> Void
    ) -> any Disposable {
        bind(to: target, on: .mainThread, of: nil) { target, value in
            // They stay on this thread, which is the main actor's.
            nonisolated(unsafe) let (target, value) = (target, value)
            MainActor.assumeIsolated { binding(target, value) }
        }
    }

    /// Binds the values to a target on an executor, until the target is deinitialised.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - executor: Where the binding runs.
    ///   - binding: Called with the target and each value. If it belongs to an actor, it is called on that actor.
    /// - Returns: A disposable that ends the binding earlier.
    @_disfavoredOverload
    @discardableResult
    public func bind<Target: AnyObject & Sendable>(
        to target: Target, on executor: Executor,
        @_inheritActorContext binding: @escaping @isolated(any) @Sendable (Target, Value) -> Void
    ) -> any Disposable {
        bind(
            to: target, on: executor, of: binding.isolation,
            vouching(for: binding, as: (@Sendable (Target, Value) -> Void).self))
    }

    func bind<Target: AnyObject>(
        to target: Target, on executor: Executor, of actor: (any Actor)?,
        _ binding: @escaping (Target, Value) -> Void
    ) -> any Disposable {
        withExtendedLifetime(target) {
            observe(on: executor).begin(Observation(owner: target), on: actor) {
                [weak target] value in
                if let target { binding(target, value) }
            }
        }
    }

    /// Sets a property of a target to each value, until the target is deinitialised.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - keyPath: The property.
    ///   - executor: Where it is set.
    ///   - isolation: The actor of the calling code, which the property may belong to. If there is one, the
    ///     property is set on it.
    /// - Returns: A disposable that ends the binding earlier.
    @_disfavoredOverload
    @discardableResult
    public func bind<Target: AnyObject & Sendable>(
        to target: Target, _ keyPath: sending ReferenceWritableKeyPath<Target, Value>,
        on executor: Executor = .mainThread, isolation: isolated (any Actor)? = #isolation
    ) -> any Disposable {
        bind(to: target, on: executor, of: isolation) { $0[keyPath: keyPath] = $1 }
    }

    /// Sets an optional property of a target to each value, until the target is deinitialised.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - keyPath: The property.
    ///   - executor: Where it is set.
    ///   - isolation: The actor of the calling code, which the property may belong to. If there is one, the
    ///     property is set on it.
    /// - Returns: A disposable that ends the binding earlier.
    @_disfavoredOverload
    @discardableResult
    public func bind<Target: AnyObject & Sendable>(
        to target: Target, _ keyPath: sending ReferenceWritableKeyPath<Target, Value?>,
        on executor: Executor = .mainThread, isolation: isolated (any Actor)? = #isolation
    ) -> any Disposable {
        bind(to: target, on: executor, of: isolation) { $0[keyPath: keyPath] = $1 }
    }
}
