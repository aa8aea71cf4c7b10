/// Observes a store's value. Observers look at it in the store's lane, after each action that was applied.
///
/// What an observer compares and keeps is in the client's code, where the compiler knows the types: general code takes
/// several times as long.
extension ReadableStore {
    /// A part of the value, as a signal of distinct values: the present one first, then each that differs
    /// from the one before.
    ///
    /// ```swift
    /// stock.changed(\.left).observe { print($0) }
    /// for await left in stock.changed(\.left).values { print(left) }
    /// ```
    ///
    /// The present value comes before `observe` returns if the store is on `.immediate` and idle, and
    /// otherwise soon after. ``changes(of:)`` gives old and new values together.
    ///
    /// - Parameter part: Which part. It is read after each action, under the store's lock, and its last
    ///   value is kept for each observer.
    /// - Returns: A signal that doesn't keep the store alive.
    @inlinable
    public func changed<Part: Equatable & Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable
    ) -> Signal<Part> {
        changed(part) { $0 == $1 }
    }

    /// A part of the value, as a signal of values that differ by a comparison of your own.
    ///
    /// - Parameters:
    ///   - part: Which part.
    ///   - isSame: Whether the second value counts as the same as the first, so that it is not
    ///     sent. Called in the store's lane, holding no lock.
    /// - Returns: A signal, as of ``changed(_:)``.
    @inlinable
    public func changed<Part: Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable,
        isSame: @escaping @Sendable (Part, Part) -> Bool
    ) -> Signal<Part> {
        let offset = MemoryLayout<State.Value>.offset(of: part)
        return _store.looking { send in
            var last: Part?
            return { state in
                let new = state.part(part, at: offset)
                if let last, isSame(last, new) { return }
                last = new
                send(new)
            }
        }
    }

    /// The changes of a part of the value: each with its old and its new value, which differ.
    ///
    /// ```swift
    /// for await change in stock.changes(of: \.left) { print(change.old, change.new) }
    /// ```
    ///
    /// Changes count from this call on. For a slow reader several changes become one, from the
    /// first old to the last new value. The sequence ends when nothing changes the store any more (it is released, it is
    /// dropped, or its node is closed), or the reading task is cancelled. Each loop over it sees all changes.
    ///
    /// - Parameter keyPath: Which part. It is read after each action, under the store's lock, and
    ///   its last value is kept.
    /// - Returns: A sequence that doesn't keep the store alive.
    public func changes<Value: Equatable & Sendable>(
        of keyPath: any KeyPath<State.Value, Value> & Sendable
    ) -> ValueChanges<State.Value, Value> {
        ValueChanges(of: _store, { $0[keyPath: keyPath] }, isSame: ==)
    }

    /// The changes of the whole value: one for each action that was applied, or for several in a
    /// row while a reader is slow.
    ///
    /// Otherwise as ``changes(of:)``. The last value is kept for the next change's old value, so
    /// that the next action copies the large parts that it writes.
    public var changes: ValueChanges<State.Value, State.Value> {
        ValueChanges(of: _store, { $0 }, isSame: { _, _ in false })
    }

    /// Calls a function after each action that changed one of some parts, or, with none given, after each
    /// action that was applied.
    ///
    /// ```swift
    /// let observation = wallet.observe(\.amount, \.currency) { wallet in print(wallet.amount) }
    /// observation.dispose()
    ///
    /// wallet.observe(\.amount, initial: true, duringScopeOf: self) { [weak self] wallet in
    ///     self?.show(wallet)  // what is there now, and what it becomes
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - part: Which parts.
    ///   - initial: Whether the function is called with the present value first, before any action that follows.
    ///   - object: Its `deinit` ends the observation, as in `Signal.observe(duringScopeOf:_:)`.
    ///     Not retained.
    ///   - body: Called with the value as the action left it, holding no lock. It may dispatch. If it belongs to an
    ///     actor, such as a closure in a main-actor class, it is called on that actor. Otherwise it is `@Sendable`,
    ///     and called on the thread that commits: on `.immediate` that is the dispatching one, on a node
    ///     the thread that applies, otherwise one of the executor. The observers of one store that belong to no
    ///     actor are called one at a time: in the order of its commits, and for each commit in the order
    ///     in which they began. With three parts or more, write the actor before the closure's parameters:
    ///     `{ @MainActor wallet in … }`.
    /// - Returns: A disposable that ends the observation. Releasing it ends nothing: put it into a
    ///   ``DisposableScope`` for that.
    @discardableResult
    @inlinable
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        initial: Bool = false, duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        var parts: [ObservedPart<State>] = []
        repeat parts.append(ObservedPart(each part))
        return _store.observe(parts, initial, object, body)
    }

    /// Calls a function after each action that changed one of some parts, with those that it changed.
    ///
    /// ```swift
    /// wallet.observe(\.amount, \.currency) { wallet, changed in
    ///     if changed.contains(\.currency) { print(wallet.currency) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - part: Which parts; with none given, the function is called after each action that was applied.
    ///   - initial: Whether the function is called with the present value first. All parts count as changed then.
    ///   - object: Its `deinit` ends the observation. Not retained.
    ///   - body: Called with the value, and those of the parts that have changed since the previous
    ///     call. Threads and order are as without the second argument. It may dispatch.
    /// - Returns: A disposable that ends the observation. Releasing it ends nothing: put it into a
    ///   ``DisposableScope`` for that.
    @discardableResult
    @inlinable
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        initial: Bool = false, duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body:
            @escaping @isolated(any) @Sendable (State.Value, Set<PartialKeyPath<State.Value>>) ->
            Void
    ) -> any Disposable {
        var parts: [ObservedPart<State>] = []
        repeat parts.append(ObservedPart(each part))
        return _store.observe(parts, initial, object, body)
    }
}

/// The same functions for no part and for two.
///
/// The compiler lets a closure inherit its actor by the number of the parameter, which a list of parts changes. So where
/// the list has three parts or more, a closure that belongs to an actor has to say so: `{ @MainActor wallet in … }`.
extension ReadableStore {
    /// Calls a function after each action that was applied.
    @discardableResult
    public func observe(
        initial: Bool = false, duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        _store.observe([], initial, object, body)
    }

    /// Calls a function after each action that was applied, with an empty set of changed parts.
    @discardableResult
    public func observe(
        initial: Bool = false, duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body:
            @escaping @isolated(any) @Sendable (State.Value, Set<PartialKeyPath<State.Value>>) ->
            Void
    ) -> any Disposable {
        _store.observe([], initial, object, body)
    }

    /// Calls a function after each action that changed one of two parts.
    @discardableResult
    @inlinable
    public func observe<First: Equatable & Sendable, Second: Equatable & Sendable>(
        _ first: any KeyPath<State.Value, First> & Sendable,
        _ second: any KeyPath<State.Value, Second> & Sendable,
        initial: Bool = false, duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        _store.observe([ObservedPart(first), ObservedPart(second)], initial, object, body)
    }

    /// Calls a function after each action that changed one of two parts, with those that it changed.
    @discardableResult
    @inlinable
    public func observe<First: Equatable & Sendable, Second: Equatable & Sendable>(
        _ first: any KeyPath<State.Value, First> & Sendable,
        _ second: any KeyPath<State.Value, Second> & Sendable,
        initial: Bool = false, duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body:
            @escaping @isolated(any) @Sendable (State.Value, Set<PartialKeyPath<State.Value>>) ->
            Void
    ) -> any Disposable {
        _store.observe([ObservedPart(first), ObservedPart(second)], initial, object, body)
    }
}
