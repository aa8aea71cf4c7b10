import Synchronization

/// The identifiers under which stores of one scope are found.
final class StoreNames: Sendable {
    /// A store that is registered, and does not live by that.
    fileprivate struct Entry: Sendable {
        let lane: ObjectIdentifier
        let state: String
        /// Gives a `Store` of the state, while it lives.
        let store: @Sendable () -> AnyObject?
    }

    /// A store of whatever state.
    // Sendable: stores are; that is lost where their state's type is.
    private struct Holder: @unchecked Sendable {
        let store: AnyObject
    }

    fileprivate struct Content {
        var entries: [String: Entry] = [:]
        /// By the store, the oldest first. *Invariant*: no list is empty.
        var names: [ObjectIdentifier: [String]] = [:]
    }

    private let content = Mutex(Content())

    func add<S: State>(_ store: Store<S>, as name: String) throws(StoreLookupError) -> AnyDisposable
    {
        let found: @Sendable () -> AnyObject? = { [weak store] in store }
        let entry = Entry(
            lane: ObjectIdentifier(store.core), state: String(describing: S.self), store: found)
        // The last reference to a store found here may be released here. It is outside the lock: a store's
        // end takes that lock.
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
        if let former { throw StoreLookupError(.taken, name, found: former.state) }
        let lane = entry.lane
        return store.core.ending(AnyDisposable { [weak self] in self?.remove(name, lane) })
    }

    func store<S: State>(_ name: String) throws(StoreLookupError) -> Store<S> {
        guard let entry = content.withLock({ $0.entries[name] }), let store = entry.store() else {
            throw StoreLookupError(.unknown, name, found: nil)
        }
        guard let store = store as? Store<S> else {
            throw StoreLookupError(.otherState, name, found: entry.state)
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

/// Why no store is found, or registered, under an identifier.
public struct StoreLookupError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: String, Sendable {
        /// No living store is registered under the identifier.
        case unknown
        /// The store under the identifier is one of another state.
        case otherState
        /// Another living store has the identifier.
        case taken
    }

    /// What kind of failure it is.
    public let code: Code
    /// The identifier.
    public let identifier: String
    /// The state of the store that has it, if one has.
    public let found: String?

    init(_ code: Code, _ identifier: String, found: String?) {
        self.code = code
        self.identifier = identifier
        self.found = found
    }

    /// What happened and what to do.
    public var description: String {
        switch code {
        case .unknown:
            """
            No store is registered as "\(identifier)" in this scope, or it was released. Register \
            it, and keep it for as long as it is to be found.
            """
        case .otherState:
            """
            The store registered as "\(identifier)" is one of \(found ?? "another state"). Ask for \
            that state, or under another identifier.
            """
        case .taken:
            """
            A store of \(found ?? "another state") is registered as "\(identifier)" already. End \
            that registration first, or choose another identifier.
            """
        }
    }
}

extension Scope {
    /// Lets a store be found by an identifier. It does not live by that: it is gone with its owner.
    ///
    /// ```swift
    /// try Scope.current.register(counter, as: "counter")
    /// let same = try Scope.current.store("counter", of: CounterState.self)
    /// ```
    ///
    /// - Parameters:
    ///   - store: A store of this scope: one of another ends the program with a message. It is not kept, so
    ///     that lookups throw `unknown` when its owner has let it go.
    ///   - identifier: Any text that no other living store of the scope has, whatever its state.
    /// - Returns: What ends the registration. Letting go of it ends nothing.
    /// - Throws: ``StoreLookupError`` when the identifier is taken.
    @discardableResult
    public func register<S: State>(
        _ store: Store<S>, as identifier: String
    ) throws(StoreLookupError) -> any Disposable & Sendable {
        precondition(store.core.scope === self, "\(S.self)'s store belongs to another scope")
        return try names.add(store, as: identifier)
    }

    /// Finds a store by its identifier.
    ///
    /// - Parameters:
    ///   - identifier: What it was registered as.
    ///   - state: Its state.
    /// - Returns: The very store that was registered.
    /// - Throws: ``StoreLookupError`` when none is registered, or one of another state.
    public func store<S: State>(
        _ identifier: String, of state: S.Type = S.self
    ) throws(StoreLookupError) -> Store<S> {
        try names.store(identifier)
    }
}
