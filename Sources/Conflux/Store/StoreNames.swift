import Synchronization

/// Finds the stores of one scope by their identifiers.
final class StoreNames: Sendable {
    /// A registered store. The registration doesn't keep it alive.
    fileprivate struct Entry: Sendable {
        let lane: ObjectIdentifier
        let state: String
        /// Returns the `Store`, while it lives.
        let store: @Sendable () -> AnyObject?
    }

    /// A store, whatever its state.
    // Sendable: stores are, but this reference doesn't say so.
    private struct Holder: @unchecked Sendable {
        let store: AnyObject
    }

    fileprivate struct Content {
        var entries: [String: Entry] = [:]
        /// The names of each store, oldest first. *Invariant*: no list is empty.
        var names: [ObjectIdentifier: [String]] = [:]
    }

    private let content = Mutex(Content())

    func add<S: State>(_ store: Store<S>, as name: String) throws(StoreError) -> AnyDisposable {
        let found: @Sendable () -> AnyObject? = { [weak store] in store }
        let entry = Entry(
            lane: ObjectIdentifier(store.core), state: S.title, store: found)
        // The last reference to the store that is found may be released here. That must happen
        // outside the lock, since a store's end takes the lock.
        let (former, holder) = content.withLock { content -> (Entry?, Holder?) in
            if let former = content.entries[name], let store = former.store() {
                return (former, Holder(store: store))
            }
            content.remove(name)
            content.entries[name] = entry
            content.names[entry.lane, default: []].append(name)
            return (nil, nil)
        }
        defer { withExtendedLifetime(holder) {} }
        if let former {
            throw StoreError(
                .nameTaken,
                """
                A store of \(former.state) is registered as "\(name)" already. End that registration \
                first, or choose another identifier.
                """)
        }
        let lane = entry.lane
        return store.core.ending(AnyDisposable { [weak self] in self?.remove(name, lane) })
    }

    func store<S: State>(_ name: String) throws(StoreError) -> Store<S> {
        guard let entry = content.withLock({ $0.entries[name] }), let store = entry.store() else {
            throw StoreError(
                .unknown,
                """
                No store is registered as "\(name)" in this scope, or it was released. Register it, \
                and keep it for as long as it is to be found.
                """)
        }
        guard let store = store as? Store<S> else {
            throw StoreError(
                .otherState,
                """
                The store registered as "\(name)" is one of \(entry.state). Ask for that state, or \
                under another identifier.
                """)
        }
        return store
    }

    func name(of lane: Lane) -> String? {
        let identity = ObjectIdentifier(lane)
        return content.withLock { $0.names[identity]?.first }
    }

    private func remove(_ name: String, _ lane: ObjectIdentifier) {
        content.withLock { content in
            if content.entries[name]?.lane == lane { content.remove(name) }
        }
    }
}

extension StoreNames.Content {
    fileprivate mutating func remove(_ name: String) {
        guard let lane = entries.removeValue(forKey: name)?.lane else { return }
        names[lane]?.removeAll { $0 == name }
        if names[lane]?.isEmpty == true { names[lane] = nil }
    }
}

extension Scope {
    /// Registers a store, so that it can be found by an identifier. The registration doesn't keep
    /// the store alive.
    ///
    /// ```swift
    /// try Scope.current.register(counter, as: "counter")
    /// let same = try Scope.current.store("counter", of: CounterState.self)
    /// ```
    ///
    /// - Parameters:
    ///   - store: A store of this scope. A store of another scope ends the program with a message.
    ///     It is not kept: lookups throw `unknown` when its owner has released it.
    ///   - identifier: Any text that no other living store of the scope has, whatever its state.
    /// - Returns: A disposable that ends the registration. Releasing it ends nothing.
    /// - Throws: ``StoreError`` when the identifier is taken.
    @discardableResult
    public func register<S: State>(
        _ store: Store<S>, as identifier: String
    ) throws(StoreError) -> any Disposable & Sendable {
        precondition(store.core.scope === self, "\(S.self)'s store belongs to another scope")
        return try names.add(store, as: identifier)
    }

    /// Finds a store by its identifier.
    ///
    /// - Parameters:
    ///   - identifier: What it was registered as.
    ///   - state: Its state.
    /// - Returns: The registered store.
    /// - Throws: ``StoreError`` when none is registered, or one of another state.
    public func store<S: State>(
        _ identifier: String, of state: S.Type = S.self
    ) throws(StoreError) -> Store<S> {
        try names.store(identifier)
    }

    /// All live stores of this scope: the oldest first within each state, and the states in no order. May be
    /// read on any thread.
    public var stores: [StoreIdentity] { lanes.map(\.identity) }
}
