/// A store of a value, or a read-only view of one: what can be read and observed.
///
/// Only ``Store`` and ``ReadOnlyStore`` conform.
public protocol ReadableStore: Sendable {
    /// The state of the store.
    associatedtype State: ValueHolder

    /// The store itself.
    var _store: Store<State> { get }
}

extension Store: ReadableStore where State: ValueHolder {
    /// The store itself.
    public var _store: Store { self }

    /// A read-only view of the store.
    public var readOnly: ReadOnlyStore<State> { ReadOnlyStore(_store: self) }

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
}

extension Computed where State: ValueHolder {
    /// A part of the value, as it is now. Safe on any thread.
    ///
    /// - Parameter keyPath: Which part.
    public subscript<Value>(dynamicMember keyPath: KeyPath<State.Value, Value>) -> Value {
        state._state._read { $0[keyPath: keyPath] }
    }
}

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
public struct ReadOnlyStore<State: ValueHolder>: ReadableStore {
    /// The store itself.
    public let _store: Store<State>

    /// The whole value, as it is now.
    public var value: State.Value { _store.value }

    /// A part of the value, as it is now.
    public subscript<Value>(dynamicMember keyPath: KeyPath<State.Value, Value>) -> Value {
        _store[dynamicMember: keyPath]
    }
}

/// A read-only view of a storage.
public typealias ReadOnlyStorage<Value: Sendable> = ReadOnlyStore<StorageState<Value>>
