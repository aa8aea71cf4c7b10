import ConfluxVocabulary

/// The stores and states that the sequencer knows: what a target is checked against at the door.
struct StoreDirectory: Sendable, Equatable {
    /// One life of a store.
    struct Store: Sendable, Equatable {
        /// The number of its `created` entry.
        var life: SequenceNumber
        var schemaVersion: UInt32
        /// Its newest snapshot: for now the state it was created with.
        var initial: EncodedState
    }

    /// The stores whose `created` entry is in the log.
    private(set) var stores: [StoreName: Store] = [:]
    /// The bytes of all snapshots held, and of those to come. *Use*: their bound.
    private(set) var initialBytes = 0
    /// States of which the log has, or will have, an entry. *Invariant*: a state that entered it
    /// stays.
    private(set) var seen: Set<Name> = []
    /// How many live nodes bridge each state.
    private var bridges: [Name: Int] = [:]
    /// How many of the bridged states are not in `seen`.
    private var unseenBridgeCount = 0

    /// How many states are known, each counted once. *Use*: their bound.
    var stateCount: Int { seen.count + unseenBridgeCount }

    func store(_ name: StoreName) -> Store? { stores[name] }

    /// A store is about to begin: what it takes counts from here on, so that many that begin at
    /// once stay within the bounds that one does.
    mutating func expect(_ name: StoreName, initial: EncodedState) {
        initialBytes += initial.bytes.count
        see(name.state)
    }

    /// A store began that was expected.
    mutating func begin(_ store: Store, named name: StoreName) {
        stores[name] = store
    }

    mutating func insert(_ store: Store, named name: StoreName) {
        expect(name, initial: store.initial)
        initialBytes -= stores[name]?.initial.bytes.count ?? 0
        begin(store, named: name)
    }

    /// A life is over. Its state stays seen: the log has entries of it.
    mutating func end(_ name: StoreName, life: SequenceNumber) {
        guard let store = stores[name], store.life == life else { return }
        initialBytes -= store.initial.bytes.count
        stores[name] = nil
    }

    /// Whether a live node bridges the state, or the log has an entry of it.
    func knows(state: Name) -> Bool { seen.contains(state) || bridges[state] != nil }

    /// Whether the target is in the log already.
    func knows(target: Target) -> Bool {
        if case .state(let name) = target { seen.contains(name) } else { true }
    }

    mutating func see(_ target: Target) {
        if case .state(let name) = target { see(name) }
    }

    mutating func see(_ state: Name) {
        guard !seen.contains(state) else { return }
        seen.insert(state)
        if bridges[state] != nil { unseenBridgeCount -= 1 }
    }

    mutating func addBridge(_ state: Name) {
        if bridges[state] == nil, !seen.contains(state) { unseenBridgeCount += 1 }
        bridges[state, default: 0] += 1
    }

    mutating func removeBridge(_ state: Name) {
        guard let count = bridges[state] else { return }
        bridges[state] = count > 1 ? count - 1 : nil
        if count == 1, !seen.contains(state) { unseenBridgeCount -= 1 }
    }

    /// The names that a person may have meant, some of them where there are many.
    var knownNames: String {
        let most = 20
        let states = seen.union(bridges.keys).map(\.text)
        let named = stores.keys.filter { $0.instance != .shared }.map(\.description)
        let names = (states + named).sorted()
        guard !names.isEmpty else { return "none yet" }
        let shown = names.prefix(most).joined(separator: ", ")
        return names.count > most ? "\(shown) and \(names.count - most) more" : shown
    }
}
