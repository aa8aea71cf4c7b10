import ConfluxVocabulary

/// The stores and states that the sequencer knows: what a target is checked against at the door.
struct StoreDirectory: Sendable {
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
    /// The bytes of all snapshots held. *Use*: their bound.
    private(set) var initialBytes = 0
    /// States of which the log has an entry. *Invariant*: a state that entered it stays.
    private var seen: Set<Name> = []
    /// How many live nodes bridge each state.
    private var bridges: [Name: Int] = [:]

    /// How many states are known.
    var stateCount: Int { seen.count + bridges.count }

    func store(_ name: StoreName) -> Store? { stores[name] }

    mutating func insert(_ store: Store, named name: StoreName) {
        initialBytes += store.initial.bytes.count - (stores[name]?.initial.bytes.count ?? 0)
        stores[name] = store
        seen.insert(name.state)
    }

    /// Whether a live node bridges the state, or the log has an entry of it.
    func knows(state: Name) -> Bool { seen.contains(state) || bridges[state] != nil }

    /// Whether the target is in the log already.
    func knows(target: Target) -> Bool {
        if case .state(let name) = target { seen.contains(name) } else { true }
    }

    mutating func see(_ target: Target) {
        if case .state(let name) = target, !seen.contains(name) { seen.insert(name) }
    }

    mutating func addBridge(_ state: Name) { bridges[state, default: 0] += 1 }

    mutating func removeBridge(_ state: Name) {
        guard let count = bridges[state] else { return }
        bridges[state] = count > 1 ? count - 1 : nil
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
