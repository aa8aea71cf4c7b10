/// A store as those see it who may look and may not change it.
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
/// It keeps the store alive, and is as safe on any thread.
@dynamicMemberLookup
public struct ReadOnlyStore<State: ValueHolder>: Sendable {
    private let store: Store<State>

    fileprivate init(_ store: Store<State>) {
        self.store = store
    }

    /// The whole value, as it is now.
    public var value: State.Value { store.value }

    /// A part of the value, as it is now.
    ///
    /// - Parameter keyPath: Which part.
    public subscript<Value>(dynamicMember keyPath: KeyPath<State.Value, Value>) -> Value {
        store[dynamicMember: keyPath]
    }

    /// A part of the value, as a signal of distinct values; as ``Store/changed(_:)``.
    ///
    /// - Parameter part: Which part.
    /// - Returns: A signal that doesn't keep the store alive.
    public func changed<Part: Equatable & Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable
    ) -> Signal<Part> {
        store.changed(part)
    }

    /// A part of the value, as a signal of values that differ by a comparison of your own; as
    /// ``Store/changed(_:isSame:)``.
    ///
    /// - Parameters:
    ///   - part: Which part.
    ///   - isSame: Whether a value, the second one, is to be passed over behind another.
    /// - Returns: A signal that doesn't keep the store alive.
    public func changed<Part: Sendable>(
        _ part: any KeyPath<State.Value, Part> & Sendable,
        isSame: @escaping @Sendable (Part, Part) -> Bool
    ) -> Signal<Part> {
        store.changed(part, isSame: isSame)
    }

    /// The changes of a part of the value, each with its old and its new value; as ``Store/changes(of:)``.
    ///
    /// - Parameter keyPath: Which part.
    /// - Returns: A sequence that doesn't keep the store alive.
    public func changes<Value: Equatable & Sendable>(
        of keyPath: any KeyPath<State.Value, Value> & Sendable
    ) -> ValueChanges<State.Value, Value> {
        store.changes(of: keyPath)
    }

    /// Calls a function after each action that changed one of some parts, or, with none given, after each
    /// action that was applied; as that of ``Store``.
    ///
    /// - Parameters:
    ///   - part: Which parts.
    ///   - object: What ends the observation with its `deinit`. Not retained.
    ///   - body: Called with the value in the store's lane, holding no lock. It may dispatch.
    /// - Returns: What ends it. Letting go of it ends nothing.
    @discardableResult
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        duringScopeOf object: AnyObject? = nil, body: @escaping (State.Value) -> Void
    ) -> any Disposable {
        store.observe(repeat each part, duringScopeOf: object, body: body)
    }

    /// Calls a function after each action that changed one of some parts, with those that it changed; as
    /// that of ``Store``.
    ///
    /// - Parameters:
    ///   - part: Which parts.
    ///   - object: What ends the observation with its `deinit`. Not retained.
    ///   - body: Called with the value and the changed parts in the store's lane, holding no lock. It may
    ///     dispatch.
    /// - Returns: What ends it. Letting go of it ends nothing.
    @discardableResult
    public func observe<each Part: Equatable & Sendable>(
        _ part: repeat any KeyPath<State.Value, each Part> & Sendable,
        duringScopeOf object: AnyObject? = nil,
        body: @escaping (State.Value, Set<PartialKeyPath<State.Value>>) -> Void
    ) -> any Disposable {
        store.observe(repeat each part, duringScopeOf: object, body: body)
    }

    /// The activities of one type; as ``Store/activities(of:)``.
    ///
    /// - Parameter type: The type; others are passed over.
    /// - Returns: A signal that doesn't keep the store alive.
    public func activities<Activity: Sendable>(of type: Activity.Type) -> Signal<Activity> {
        store.activities(of: type)
    }
}

/// A storage as those see it who may look and may not change it.
public typealias ReadOnlyStorage<Value: Sendable> = ReadOnlyStore<StorageState<Value>>

extension Store where State: ValueHolder {
    /// The store, for those who may look and may not change it.
    public var readOnly: ReadOnlyStore<State> { ReadOnlyStore(self) }
}
