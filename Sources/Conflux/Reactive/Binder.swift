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
    ///   - binding: Called with the target and each value, on the executor of the binding.
    public init<Target: AnyObject>(target: Target, binding: @escaping (Target, Value) -> Void) {
        bind = { [weak target] signal, executor in
            if let target { return signal.bind(to: target, on: executor, binding: binding) }
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
    @preconcurrency
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, binding: @escaping @MainActor (Target, Value) -> Void
    ) -> any Disposable {
        bind(to: target, on: .mainThread) { target, value in
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
    ///   - binding: Called with the target and each value.
    /// - Returns: A disposable that ends the binding earlier.
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, on executor: Executor, binding: @escaping (Target, Value) -> Void
    ) -> any Disposable {
        observe(on: executor).observe(duringScopeOf: target) { [weak target] value in
            if let target { binding(target, value) }
        }
    }

    /// Sets a property of a target to each value, until the target is deinitialised.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - keyPath: The property.
    ///   - executor: Where it is set.
    /// - Returns: A disposable that ends the binding earlier.
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, _ keyPath: ReferenceWritableKeyPath<Target, Value>,
        on executor: Executor = .mainThread
    ) -> any Disposable {
        bind(to: target, on: executor) { $0[keyPath: keyPath] = $1 }
    }

    /// Sets an optional property of a target to each value, until the target is deinitialised.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - keyPath: The property.
    ///   - executor: Where it is set.
    /// - Returns: A disposable that ends the binding earlier.
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, _ keyPath: ReferenceWritableKeyPath<Target, Value?>,
        on executor: Executor = .mainThread
    ) -> any Disposable {
        bind(to: target, on: executor) { $0[keyPath: keyPath] = $1 }
    }
}
