/// Reads and observes a store's value. Observers are called in the store's lane, after each action
/// that changed what they observe.
extension Store where State: ValueHolder {
    /// The whole value, as it is now. Safe on any thread.
    ///
    /// Reading a part by its name, as in `stock.left`, copies only that part.
    @inlinable
    public var value: State.Value {
        let state = computed.state._state
        let mark = state.markOfReader()
        if mark.pointee.isTracking { state.track { \.self } }
        return state.read(mark) { $0 }
    }

    /// A part of the value, as it is now. Safe on any thread.
    ///
    /// If a part has the name of one of the store's own members, read it from ``value``.
    ///
    /// - Parameter keyPath: Which part.
    @inlinable
    public subscript<Value>(dynamicMember keyPath: KeyPath<State.Value, Value>) -> Value {
        let state = computed.state._state
        let mark = state.markOfReader()
        if mark.pointee.isTracking { state.track { keyPath } }
        return state.read(mark) { $0[keyPath: keyPath] }
    }

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
    public func changed<Part: Equatable & Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable
    ) -> Signal<Part> {
        changed(part, isSame: ==)
    }

    /// A part of the value, as a signal of values that differ by a comparison of your own.
    ///
    /// - Parameters:
    ///   - part: Which part.
    ///   - isSame: Whether the second value counts as the same as the first, so that it is not
    ///     sent. Called in the store's lane, holding no lock.
    /// - Returns: A signal, as of ``changed(_:)``.
    public func changed<Part: Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable,
        isSame: @escaping @Sendable (Part, Part) -> Bool
    ) -> Signal<Part> {
        signal(of: .init({ $0[keyPath: part] }, isSame: isSame)) { _, _, new in new }
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
        ValueChanges(core, computed.state._state, .init({ $0[keyPath: keyPath] }, isSame: ==))
    }

    /// The changes of the whole value: one for each action that was applied, or for several in a
    /// row while a reader is slow.
    ///
    /// Otherwise as ``changes(of:)``. The last value is kept for the next change's old value, so
    /// that the next action copies the large parts that it writes.
    public var changes: ValueChanges<State.Value, State.Value> {
        ValueChanges(core, computed.state._state, .init({ $0 }, isSame: { _, _ in false }))
    }

    /// Calls a function after each action that changed one of some parts, or, with none given, after each
    /// action that was applied.
    ///
    /// ```swift
    /// let observation = wallet.observe(\.amount, \.currency) { wallet in print(wallet.amount) }
    /// observation.dispose()
    ///
    /// wallet.observe(\.amount, duringScopeOf: self) { [weak self] wallet in self?.show(wallet) }
    /// ```
    ///
    /// - Parameters:
    ///   - part: Which parts.
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
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        begin(named(repeat each part), object, body)
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
    ///   - object: Its `deinit` ends the observation. Not retained.
    ///   - body: Called with the value, and those of the parts that have changed since the previous
    ///     call. Threads and order are as without the second argument. It may dispatch.
    /// - Returns: A disposable that ends the observation. Releasing it ends nothing: put it into a
    ///   ``DisposableScope`` for that.
    @discardableResult
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body:
            @escaping @isolated(any) @Sendable (State.Value, Set<PartialKeyPath<State.Value>>) ->
            Void
    ) -> any Disposable {
        begin(named(repeat each part), object, body)
    }

    private func named<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable
    ) -> [NamedPart<State.Value>] {
        var parts: [NamedPart<State.Value>] = []
        repeat parts.append(NamedPart(each part))
        return parts
    }

    /// Observes some parts.
    fileprivate func begin(
        _ parts: [NamedPart<State.Value>], _ object: AnyObject?,
        _ body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        let call = vouching(for: body, as: (@Sendable (State.Value) -> Void).self)
        return changes(of: parts).begin(Observation(owner: object), on: body.isolation) {
            call($0.0)
        }
    }

    /// Observes some parts, with the names of those that an action changed.
    fileprivate func begin(
        _ parts: [NamedPart<State.Value>], _ object: AnyObject?,
        _ body:
            @escaping @isolated(any) @Sendable (State.Value, Set<PartialKeyPath<State.Value>>) ->
            Void
    ) -> any Disposable {
        let call = vouching(
            for: body,
            as: (@Sendable (State.Value, Set<PartialKeyPath<State.Value>>) -> Void).self)
        return changes(of: parts).begin(Observation(owner: object), on: body.isolation) {
            call($0.0, $0.1)
        }
    }

    /// The value after each action that changed one of some parts, with the names of those that it changed.
    private func changes(
        of parts: [NamedPart<State.Value>]
    ) -> Signal<(State.Value, Set<PartialKeyPath<State.Value>>)> {
        let subject = PartObserver<State.Value, [any Equatable & Sendable]>.Subject { value in
            parts.map { $0.read(value) }
        } isSame: { old, new in
            !parts.isEmpty && parts.changed(from: old, to: new).isEmpty
        }
        return signal(of: subject) { value, old, new in
            old.map { (value.content, Set(parts.changed(from: $0, to: new))) }
        }
    }

    /// A signal that is made from the changes of a part.
    ///
    /// - Parameters:
    ///   - subject: The part.
    ///   - change: Makes what is sent from the old and the new part; nil if nothing is to be sent.
    ///     There is no old part at the first look, which comes between two actions.
    /// - Returns: A signal that doesn't keep the store alive.
    func signal<Part, Sent>(
        of subject: PartObserver<State.Value, Part>.Subject,
        _ change:
            @escaping @Sendable (any ObservedValue<State.Value>, _ old: Part?, _ new: Part) -> Sent?
    ) -> Signal<Sent> {
        let (lane, value) = (core, computed.state._state)
        return Signal { observation, send in
            PartObserver(subject, for: observation) { value, old, new in
                if let sent = change(value, old, new) { send(sent) }
            }.begin(at: value, in: lane)
        }.ending(with: lane)
    }
}

/// The same functions for no part and for two.
///
/// The compiler lets a closure inherit its actor by the number of the parameter, which a list of parts changes. So where
/// the list has three parts or more, a closure that belongs to an actor has to say so: `{ @MainActor wallet in … }`.
extension Store where State: ValueHolder {
    /// Calls a function after each action that was applied.
    @discardableResult
    public func observe(
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        begin([], object, body)
    }

    /// Calls a function after each action that was applied, with an empty set of changed parts.
    @discardableResult
    public func observe(
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body:
            @escaping @isolated(any) @Sendable (State.Value, Set<PartialKeyPath<State.Value>>) ->
            Void
    ) -> any Disposable {
        begin([], object, body)
    }

    /// Calls a function after each action that changed one of two parts.
    @discardableResult
    public func observe<First: Equatable & Sendable, Second: Equatable & Sendable>(
        _ first: any KeyPath<State.Value, First> & Sendable,
        _ second: any KeyPath<State.Value, Second> & Sendable,
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        begin([NamedPart(first), NamedPart(second)], object, body)
    }

    /// Calls a function after each action that changed one of two parts, with those that it changed.
    @discardableResult
    public func observe<First: Equatable & Sendable, Second: Equatable & Sendable>(
        _ first: any KeyPath<State.Value, First> & Sendable,
        _ second: any KeyPath<State.Value, Second> & Sendable,
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body:
            @escaping @isolated(any) @Sendable (State.Value, Set<PartialKeyPath<State.Value>>) ->
            Void
    ) -> any Disposable {
        begin([NamedPart(first), NamedPart(second)], object, body)
    }
}

/// A part of a value with its name, whatever its type.
private struct NamedPart<Root>: Sendable {
    let keyPath: any PartialKeyPath<Root> & Sendable
    let read: @Sendable (Root) -> any Equatable & Sendable

    init<Part: Equatable & Sendable>(_ keyPath: any KeyPath<Root, Part> & Sendable) {
        self.keyPath = keyPath
        read = { $0[keyPath: keyPath] }
    }
}

extension Array {
    /// The names of the parts that differ.
    fileprivate func changed<Root>(
        from old: [any Equatable & Sendable], to new: [any Equatable & Sendable]
    ) -> [PartialKeyPath<Root>] where Element == NamedPart<Root> {
        indices.filter { !old[$0].equals(new[$0]) }.map { self[$0].keyPath }
    }
}
