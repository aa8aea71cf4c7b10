/// A store of a value of any type. Functions change it, not actions of a type of its own.
///
/// ```swift
/// struct Screen { var count = 0 }
///
/// let storage = Storage(Screen())
/// storage.commit("increment") { draft in draft.count += 1 }
/// storage.changed(\.count).observe { print($0) }
/// ```
///
/// It is a store like any other: commits come one after the other, observers, middleware, locks
/// and transactions are the same. It stays in its process: a function can't be sent to others.
public typealias Storage<Value: Sendable> = Store<StorageState<Value>>

/// The state of a storage, whatever its value.
public typealias StorageState<Value: Sendable> = ValueState<Value, StorageCommit<Value>>

extension ValueState where Action == StorageCommit<Value> {
    /// Makes the state of a storage.
    ///
    /// - Parameter value: What is held at first.
    public convenience init(_ value: Value) {
        self.init(
            value,
            .onCopy { value, commit, _ in
                var draft = StorageDraft(
                    value: value, isWatched: Scope.current.middleware.observesCommits)
                try commit.change(&draft)
                guard draft.isChanged else { return nil }
                value = draft.value
                return draft.changes
            })
    }
}

/// A change of a storage: a function that gets a draft of the value.
public struct StorageCommit<Value: Sendable>: Sendable {
    let change: @Sendable (inout StorageDraft<Value>) throws -> Void

    /// Makes a change.
    ///
    /// - Parameter change: Called once, in the store's lane, holding no lock.
    public init(_ change: @escaping @Sendable (inout StorageDraft<Value>) throws -> Void) {
        self.change = change
    }
}

/// A storage's value while a function changes it. All that the function does becomes visible together, when it
/// has returned. If it throws, nothing does.
///
/// Its parts are read and changed by their names, or by the functions here:
///
/// ```swift
/// storage.commit { $0.count += 1 }
/// storage.commit { $0.updateIfChanged(\.title, to: "new") }
/// ```
///
/// A part with the name of a member of the draft, such as `value`, is found in ``value`` and set by
/// ``update(_:to:)``.
@dynamicMemberLookup
public struct StorageDraft<Value: Sendable> {
    /// The value as it has become so far.
    public private(set) var value: Value
    /// What was done to it, in order, if there is middleware.
    private(set) var changes: [StorageChange] = []
    private(set) var isChanged = false
    private let isWatched: Bool

    init(value: Value, isWatched: Bool) {
        self.value = value
        self.isWatched = isWatched
    }

    /// A part of the value, as it has become so far. Setting it or changing it in place counts as a change,
    /// even if it stays the same.
    ///
    /// - Parameter part: Which part.
    public subscript<Part: Sendable>(dynamicMember part: WritableKeyPath<Value, Part>) -> Part {
        get { value[keyPath: part] }
        _modify {
            isChanged = true
            // Kept for middleware alone: without it, a collection is changed in place.
            let old = isWatched ? value[keyPath: part] : nil
            defer {
                if let old {
                    changes.append(
                        StorageChange(keyPath: part, old: old, new: value[keyPath: part]))
                }
            }
            yield &value[keyPath: part]
        }
    }

    /// A part of the value that can only be read, as it has become so far.
    ///
    /// - Parameter part: Which part.
    public subscript<Part>(dynamicMember part: KeyPath<Value, Part>) -> Part {
        value[keyPath: part]
    }

    /// Replaces the whole value.
    ///
    /// - Parameter value: The other value.
    public mutating func replace(_ value: Value) {
        isChanged = true
        if isWatched { changes.append(StorageChange(keyPath: nil, old: self.value, new: value)) }
        self.value = value
    }

    /// Sets a part.
    ///
    /// - Parameters:
    ///   - part: Which part.
    ///   - new: What it becomes.
    public mutating func update<Part: Sendable>(
        _ part: WritableKeyPath<Value, Part>, to new: Part
    ) {
        self[dynamicMember: part] = new
    }

    /// Sets a part if the new value differs from what it was.
    ///
    /// - Parameters:
    ///   - part: Which part.
    ///   - new: What it becomes.
    ///   - isSame: Whether the two are the same.
    /// - Returns: Whether it was set.
    @discardableResult
    public mutating func updateIfChanged<Part: Sendable>(
        _ part: WritableKeyPath<Value, Part>, to new: Part, isSame: (Part, Part) -> Bool
    ) -> Bool {
        if isSame(value[keyPath: part], new) { return false }
        update(part, to: new)
        return true
    }

    /// Sets a part if it does not equal what it was, and returns whether it was set.
    @discardableResult
    public mutating func updateIfChanged<Part: Equatable & Sendable>(
        _ part: WritableKeyPath<Value, Part>, to new: Part
    ) -> Bool {
        updateIfChanged(part, to: new, isSame: ==)
    }
}

/// What a function did to a storage's value.
public struct StorageChange {
    /// The part that was set; nil when the whole was replaced.
    public let keyPath: AnyKeyPath?
    /// What the part was.
    public let old: any Sendable
    /// What it became.
    public let new: any Sendable
}
