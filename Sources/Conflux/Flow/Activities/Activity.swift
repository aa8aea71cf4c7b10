/// Activities: values that a store sends to observers without a change of its state.
extension Store where State: ValueHolder {
    /// Notifies the present observers of activities that something happened.
    ///
    /// ```swift
    /// enum Notice { case reachedTen }
    ///
    /// storage.activities(of: Notice.self).observe { print($0) }
    /// storage.emit(Notice.reachedTen)
    /// ```
    ///
    /// It changes nothing, is not ordered among the store's actions, and is not kept for later
    /// observers. Observers run on this thread, as those of a ``Sink`` do.
    ///
    /// - Parameters:
    ///   - activity: What happened; a value of any type.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    public func emit(
        _ activity: some Sendable, file: StaticString = #file, function: StaticString = #function,
        line: UInt = #line
    ) {
        if core.isWitnessed {
            core.scope.middleware.tell(of: core) { middleware in
                middleware.didEmit(
                    activity, from: StoreIdentity(core),
                    label: DispatchLabel(file: file, function: function, line: line))
            }
        }
        computed.state._state.activities.send(value: activity)
    }

    /// Runs a function for this store, and notifies middleware.
    ///
    /// The function may commit later. The context that it gets doesn't keep the store alive.
    ///
    /// ```swift
    /// storage.perform("increment") { context in
    ///     queue.asyncAfter(deadline: .now() + 0.1) {
    ///         context.store?.commit { $0.count += 1 }
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: What is done, in a word.
    ///   - description: What is done, in a sentence.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    ///   - body: Runs once, on this thread, before this returns.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    @discardableResult
    public func perform<Result>(
        _ name: String = "", _ description: String = "", file: StaticString = #file,
        function: StaticString = #function, line: UInt = #line,
        _ body: (StoreReference<State>) throws -> Result
    ) rethrows -> Result {
        tellPerformance(
            DispatchLabel(name, description, file: file, function: function, line: line))
        return try body(StoreReference(self))
    }

    /// Runs an asynchronous function for this store, and notifies middleware.
    ///
    /// - Parameters:
    ///   - name: What is done, in a word.
    ///   - description: What is done, in a sentence.
    ///   - isolation: The actor that the body runs on: the caller's.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    ///   - body: Runs once, before this returns.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    @discardableResult
    public func perform<Result>(
        _ name: String = "", _ description: String = "",
        isolation: isolated (any Actor)? = #isolation, file: StaticString = #file,
        function: StaticString = #function, line: UInt = #line,
        _ body: (StoreReference<State>) async throws -> Result
    ) async rethrows -> Result {
        tellPerformance(
            DispatchLabel(name, description, file: file, function: function, line: line))
        return try await body(StoreReference(self))
    }

    private func tellPerformance(_ label: DispatchLabel) {
        guard core.isWitnessed else { return }
        core.scope.middleware.tell(of: core) { middleware in
            middleware.willPerform(label, for: StoreIdentity(core))
        }
    }
}

extension ReadableStore {
    /// The activities of one type.
    ///
    /// - Parameter type: The type; others are passed over.
    /// - Returns: A signal that doesn't keep the store alive.
    public func activities<Activity: Sendable>(of type: Activity.Type) -> Signal<Activity> {
        _store.computed.state._state.activities.signal.compactMap { $0 as? Activity }
            .ending(with: _store.core)
    }
}

/// A reference to a store that doesn't keep the store alive.
public struct StoreReference<State: Conflux.State>: Sendable {
    private weak let reference: Store<State>?

    /// Makes a reference.
    ///
    /// - Parameter store: The store.
    public init(_ store: Store<State>) {
        reference = store
    }

    /// The store, while it lives. Holding the returned store keeps it alive.
    public var store: Store<State>? { reference }
}
