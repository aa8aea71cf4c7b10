/// What clients in the language mode of Swift 5 get in place of the checked functions: VueFlux's own
/// signatures. There the compiler checks no isolation. So a function runs where its caller is, as in
/// VueFlux, whatever actor it belongs to.

extension Signal {
    /// Makes a signal from a producer. In the language mode of Swift 5, the compiler doesn't check what it uses.
    ///
    /// - Parameter producer: Called at each observation, on the thread that observes.
    @available(swift, obsoleted: 6)
    public init(_ producer: @escaping Producer) {
        self.init(on: nil, producer)
    }

    /// Observes the values. In the language mode of Swift 5, the compiler doesn't check what the observer uses.
    ///
    /// - Parameter observer: Called with each value on the thread that sends it, or on the executor of
    ///   ``observe(on:)``. What it returns is ignored. (It is generic so that the compiler prefers the unchecked
    ///   function of Swift 6 as the witness of a requirement.)
    /// - Returns: A disposable that ends the observation. Releasing it ends nothing.
    @available(swift, obsoleted: 6)
    @discardableResult
    public func observe<Ignored>(_ observer: @escaping (Value) -> Ignored) -> any Disposable {
        begin(Observation(), on: nil) { _ = observer($0) }
    }

    /// Observes the values for as long as an object lives. In the language mode of Swift 5, the compiler
    /// doesn't check what the observer uses.
    ///
    /// - Parameters:
    ///   - object: Not retained.
    ///   - observer: Called with each value on the thread that sends it, or on the executor of
    ///     ``observe(on:)``.
    /// - Returns: A disposable that ends the observation before the object's end.
    @available(swift, obsoleted: 6)
    @discardableResult
    public func observe(
        duringScopeOf object: AnyObject, _ observer: @escaping (Value) -> Void
    ) -> any Disposable {
        withExtendedLifetime(object) { begin(Observation(owner: object), on: nil, observer) }
    }

    /// Makes a signal of transformed values. In the language mode of Swift 5, the compiler doesn't check
    /// what the function uses.
    ///
    /// - Parameter transform: Called for each value and each observer, where the value is sent.
    /// - Returns: A signal that starts this one at each observation.
    @available(swift, obsoleted: 6)
    public func map<Result>(_ transform: @escaping (Value) -> Result) -> Signal<Result> {
        map(on: nil, transform)
    }

    /// Binds the values to a target on the main actor. In the language mode of Swift 5, the target need
    /// not be `Sendable`.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - binding: Called with the target and each value.
    /// - Returns: A disposable that ends the binding earlier.
    @available(swift, obsoleted: 6)
    @preconcurrency
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, binding: @escaping @MainActor (Target, Value) -> Void
    ) -> any Disposable {
        bindOnMain(to: target, binding)
    }

    /// Binds the values to a target on an executor. In the language mode of Swift 5, the compiler doesn't
    /// check what the binding uses.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - executor: Where the binding runs.
    ///   - binding: Called with the target and each value.
    /// - Returns: A disposable that ends the binding earlier.
    @available(swift, obsoleted: 6)
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, on executor: Executor, binding: @escaping (Target, Value) -> Void
    ) -> any Disposable {
        bind(to: target, on: executor, of: nil, binding)
    }

    /// Sets a property of a target to each value. In the language mode of Swift 5, the target need not
    /// be `Sendable`.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - keyPath: The property.
    ///   - executor: Where it is set.
    /// - Returns: A disposable that ends the binding earlier.
    @available(swift, obsoleted: 6)
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, _ keyPath: ReferenceWritableKeyPath<Target, Value>,
        on executor: Executor = .mainThread
    ) -> any Disposable {
        bind(to: target, on: executor, of: nil) { $0[keyPath: keyPath] = $1 }
    }

    /// Sets an optional property of a target to each value. In the language mode of Swift 5, the target
    /// need not be `Sendable`.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - keyPath: The property.
    ///   - executor: Where it is set.
    /// - Returns: A disposable that ends the binding earlier.
    @available(swift, obsoleted: 6)
    @discardableResult
    public func bind<Target: AnyObject>(
        to target: Target, _ keyPath: ReferenceWritableKeyPath<Target, Value?>,
        on executor: Executor = .mainThread
    ) -> any Disposable {
        bind(to: target, on: executor, of: nil) { $0[keyPath: keyPath] = $1 }
    }
}

extension Binder {
    /// Makes a binder. In the language mode of Swift 5, the compiler doesn't check what the binding uses.
    ///
    /// - Parameters:
    ///   - target: Not retained.
    ///   - binding: Called with the target and each value, on the executor of the binding.
    @available(swift, obsoleted: 6)
    public init<Target: AnyObject>(target: Target, binding: @escaping (Target, Value) -> Void) {
        self.init(target, on: nil, binding)
    }
}

extension AnyDisposable {
    /// Makes a disposable that runs a function when it is disposed. In the language mode of Swift 5, the
    /// compiler doesn't check what the function uses.
    ///
    /// - Parameter dispose: Called at most once, on the thread that disposes.
    @available(swift, obsoleted: 6)
    public convenience init(_ dispose: @escaping () -> Void) {
        self.init(on: nil, vouching(for: dispose, as: (@Sendable () -> Void).self))
    }
}

extension Executor {
    /// Makes an executor from a context of your own. In the language mode of Swift 5, the compiler doesn't
    /// check what the context uses.
    ///
    /// - Parameter context: Runs each function that it is given exactly once; it may be called on any
    ///   thread, by several threads at once.
    @available(swift, obsoleted: 6)
    public init(_ context: @escaping Context) {
        self.init(on: nil, context)
    }

    /// Runs a function, now or later, as this executor decides. In the language mode of Swift 5, the
    /// compiler doesn't check what the function uses.
    ///
    /// - Parameter function: Called once, in the executor's context. What it returns is ignored.
    @available(swift, obsoleted: 6)
    public func execute<Ignored>(_ function: @escaping () -> Ignored) {
        run(vouching(for: { _ = function() }, as: (@Sendable () -> Void).self))
    }
}

/// What satisfies a requirement of a protocol of the client's own, such as
/// `func observe(_ observer: @escaping (Value) -> Void) -> Disposable`. The types of these functions say nothing
/// about isolation, so calling them warns in the language mode of Swift 6.
extension Signal {
    /// Observes the values with a function that the compiler knows too little about.
    ///
    /// - Parameter observer: Called on the main actor if this is called on the main queue, and otherwise where
    ///   values are sent.
    /// - Returns: A disposable that ends the observation. Releasing it ends nothing.
    @_disfavoredOverload
    @available(
        swift, deprecated: 6,
        message: "The type of this function doesn't say where it may run: pass a closure."
    )
    @discardableResult
    public func observe(_ observer: @escaping (Value) -> Void) -> any Disposable {
        begin(Observation(), on: Executor.actorOfCaller, observer)
    }
}

extension Executor {
    /// Runs a function that the compiler knows too little about.
    ///
    /// - Parameter function: Called once: on the main actor if this is called on the main queue, and otherwise in
    ///   the executor's context.
    @_disfavoredOverload
    @available(
        swift, deprecated: 6,
        message: "The type of this function doesn't say where it may run: pass a closure."
    )
    public func execute(_ function: @escaping () -> Void) {
        let body = vouching(for: function, as: (@Sendable () -> Void).self)
        guard let executor = Executor.of(Self.actorOfCaller) else { return run(body) }
        run { executor.run(body) }
    }
}
