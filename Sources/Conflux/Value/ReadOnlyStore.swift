/// A read-only view of a store.
///
/// ```swift
/// final class Screen {
///     private let storage = Storage(Content())
///     var state: ReadOnlyStorage<Content> { storage.readOnly }
/// }
///
/// screen.state.changed(\.title).observe { print($0) }
/// ```
///
/// It keeps the store alive. Its members are those of ``Store``, and as safe on any thread.
@dynamicMemberLookup
public struct ReadOnlyStore<State: ValueHolder>: Sendable {
    fileprivate let store: Store<State>

    /// The whole value, as it is now.
    public var value: State.Value { store.value }

    /// A part of the value, as it is now.
    public subscript<Value>(dynamicMember keyPath: KeyPath<State.Value, Value>) -> Value {
        store[dynamicMember: keyPath]
    }

    /// A part of the value, as a signal of distinct values.
    public func changed<Part: Equatable & Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable
    ) -> Signal<Part> {
        store.changed(part)
    }

    /// A part of the value, as a signal of values that differ by a comparison of your own.
    public func changed<Part: Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable,
        isSame: @escaping @Sendable (Part, Part) -> Bool
    ) -> Signal<Part> {
        store.changed(part, isSame: isSame)
    }

    /// The changes of a part of the value, each with its old and its new value.
    public func changes<Value: Equatable & Sendable>(
        of keyPath: any KeyPath<State.Value, Value> & Sendable
    ) -> ValueChanges<State.Value, Value> {
        store.changes(of: keyPath)
    }

    /// Calls a function after each action that changed one of some parts, or after each action.
    @discardableResult
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        store.observe(repeat each part, duringScopeOf: object, body: body)
    }

    /// Calls a function after each action that changed one of some parts, with those that it changed.
    @discardableResult
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body:
            @escaping @isolated(any) @Sendable (State.Value, Set<PartialKeyPath<State.Value>>) ->
            Void
    ) -> any Disposable {
        store.observe(repeat each part, duringScopeOf: object, body: body)
    }

    /// Calls a function after each action that was applied.
    @discardableResult
    public func observe(
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        store.observe(duringScopeOf: object, body: body)
    }

    /// Calls a function after each action that was applied, with an empty set of changed parts.
    @discardableResult
    public func observe(
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body:
            @escaping @isolated(any) @Sendable (State.Value, Set<PartialKeyPath<State.Value>>) ->
            Void
    ) -> any Disposable {
        store.observe(duringScopeOf: object, body: body)
    }

    /// Calls a function after each action that changed one of two parts.
    @discardableResult
    public func observe<First: Equatable & Sendable, Second: Equatable & Sendable>(
        _ first: any KeyPath<State.Value, First> & Sendable,
        _ second: any KeyPath<State.Value, Second> & Sendable,
        duringScopeOf object: AnyObject? = nil,
        @_inheritActorContext body: @escaping @isolated(any) @Sendable (State.Value) -> Void
    ) -> any Disposable {
        store.observe(first, second, duringScopeOf: object, body: body)
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
        store.observe(first, second, duringScopeOf: object, body: body)
    }

    /// The activities of one type.
    public func activities<Activity: Sendable>(of type: Activity.Type) -> Signal<Activity> {
        store.activities(of: type)
    }
}

/// A read-only view of a storage.
public typealias ReadOnlyStorage<Value: Sendable> = ReadOnlyStore<StorageState<Value>>

extension Store where State: ValueHolder {
    /// A read-only view of the store.
    public var readOnly: ReadOnlyStore<State> { ReadOnlyStore(store: self) }
}
