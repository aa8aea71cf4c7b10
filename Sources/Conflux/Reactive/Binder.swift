/// What a target does with a value, described apart from any signal.
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
    private let bind: (Signal<Value>, Executor) -> any Disposable & Sendable

    /// Makes a binder.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - binding: Called with the target and each value, where the signal is bound.
    @preconcurrency
    public init<Target: AnyObject>(
        target: Target, binding: @escaping @Sendable (Target, Value) -> Void
    ) {
        let target = Unretained(target)
        bind = { signal, executor in
            signal.bind(to: target, on: executor, binding: binding)
        }
    }

    /// Binds a signal to the target, until that is deinitialised.
    ///
    /// - Parameters:
    ///   - signal: Whose values to bind.
    ///   - executor: Where the binding runs.
    /// - Returns: What ends the binding earlier; disposed already if the target is gone.
    @preconcurrency
    @discardableResult
    public func bind(
        signal: Signal<Value>, on executor: Executor = .mainThread
    ) -> any Disposable & Sendable {
        bind(signal, executor)
    }
}

extension Signal {
    /// Binds the values to the target of a binder, until that is deinitialised.
    ///
    /// - Parameters:
    ///   - binder: What to do with them.
    ///   - executor: Where to do it.
    /// - Returns: What ends the binding earlier; disposed already if the target is gone.
    @preconcurrency
    @discardableResult
    public func bind(
        to binder: Binder<Value>, on executor: Executor = .mainThread
    ) -> any Disposable & Sendable {
        binder.bind(signal: self, on: executor)
    }

    /// Binds the values to a target on the main actor, until the target is deinitialised.
    ///
    /// Values that are sent on main reach the target at once, as with ``Executor/mainThread``.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - binding: Called with the target and each value.
    /// - Returns: What ends the binding earlier.
    @preconcurrency
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, binding: @escaping @MainActor @Sendable (Target, Value) -> Void
    ) -> any Disposable & Sendable {
        bind(to: Unretained(target), on: .mainThread) { target, value in
            let arguments = MainArguments(target: target, value: value)
            MainActor.assumeIsolated { binding(arguments.target, arguments.value) }
        }
    }

    /// Binds the values to a target on an executor, until the target is deinitialised.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - executor: Where the binding runs.
    ///   - binding: Called with the target and each value.
    /// - Returns: What ends the binding earlier.
    @preconcurrency
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, on executor: Executor,
        binding: @escaping @Sendable (Target, Value) -> Void
    ) -> any Disposable & Sendable {
        bind(to: Unretained(target), on: executor, binding: binding)
    }

    /// Sets a property of a target to each value, until the target is deinitialised.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - keyPath: The property.
    ///   - executor: Where it is set.
    /// - Returns: What ends the binding earlier.
    @preconcurrency
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, _ keyPath: ReferenceWritableKeyPath<Target, Value>,
        on executor: Executor = .mainThread
    ) -> any Disposable & Sendable {
        let property = Property(keyPath: keyPath)
        return bind(to: Unretained(target), on: executor) { target, value in
            target[keyPath: property.keyPath] = value
        }
    }

    /// Sets an optional property of a target to each value, until the target is deinitialised.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - keyPath: The property.
    ///   - executor: Where it is set.
    /// - Returns: What ends the binding earlier.
    @preconcurrency
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, _ keyPath: ReferenceWritableKeyPath<Target, Value?>,
        on executor: Executor = .mainThread
    ) -> any Disposable & Sendable {
        let property = Property(keyPath: keyPath)
        return bind(to: Unretained(target), on: executor) { target, value in
            target[keyPath: property.keyPath] = value
        }
    }

    /// What all bindings are: an observation that lasts as long as its target.
    fileprivate func bind<Target: AnyObject>(
        to target: Unretained<Target>, on executor: Executor,
        binding: @escaping @Sendable (Target, Value) -> Void
    ) -> any Disposable & Sendable {
        guard let object = target.object else {
            let ended = AnyDisposable()
            ended.dispose()
            return ended
        }
        return observe(on: executor).observe(duringScopeOf: object) { value in
            if let object = target.object { binding(object, value) }
        }
    }
}

/// A target that may go away.
// Sendable: the target is handed only to a binding, on the executor chosen for it.
private struct Unretained<Target: AnyObject>: @unchecked Sendable {
    weak let object: Target?

    init(_ object: Target) {
        self.object = object
    }
}

/// A key path that is used on one executor. Key paths never change; what they capture, such as a
/// subscript's arguments, is only read.
private struct Property<Target, Value>: @unchecked Sendable {
    // Sendable: see above.
    let keyPath: ReferenceWritableKeyPath<Target, Value>
}

/// Carries a binding's arguments into the main actor, on whose thread they are already.
private struct MainArguments<Target, Value>: @unchecked Sendable {
    // Sendable: see above.
    let target: Target
    let value: Value
}
