import ConfluxVocabulary

/// The stores and states that the sequencer knows: what a target is checked against at the door.
struct StoreDirectory: Sendable, Equatable {
    /// The stores whose `created` entry is in the log.
    var stores: [StoreName: StoreRecord] = [:]
    /// What entries for whole states make of the log.
    var globals: [Name: StoreLoad] = [:]
    /// Entries that have no effect (rule 23), ascending. *Invariant*: at most `skipsMax`.
    var skips: [SkippedEntry] = []
    /// The bytes of all first states held, and of those to come. *Use*: their bound.
    private(set) var initialBytes = 0
    /// States of which the log has, or will have, an entry. *Invariant*: a state that entered it
    /// stays.
    private(set) var seen: Set<Name> = []
    /// How many live nodes bridge each state.
    private var bridges: [Name: Int] = [:]
    /// How many of the bridged states are not in `seen`.
    private var unseenBridgeCount = 0

    /// The first names of states that were seen and of stores that have one of their own, ascending.
    /// *Use*: what a rejection says costs the same however many there are.
    private var firstNames: [String] = []
    /// How many such names there are.
    private var lastingNameCount = 0
    private static let namesShownMax = 20

    /// How many states are known, each counted once. *Use*: their bound.
    var stateCount: Int { seen.count + unseenBridgeCount }

    func store(_ name: StoreName) -> StoreRecord? { stores[name] }

    /// A store is about to begin: what it takes counts from here on, so that many that begin at
    /// once stay within the bounds that one does.
    mutating func expect(_ name: StoreName, initial: EncodedState) {
        initialBytes += initial.bytes.count
        see(name.state)
    }

    /// A store began that was expected.
    mutating func begin(_ store: StoreRecord, named name: StoreName) {
        var store = store
        store.globalBase = globals[name.state]?.byteCount ?? 0
        if stores.updateValue(store, forKey: name) == nil, name.instance != .shared {
            remember(name.description)
        }
    }

    private mutating func remember(_ name: String) {
        lastingNameCount += 1
        let index = firstNames.firstIndex { name < $0 } ?? firstNames.count
        guard index < Self.namesShownMax else { return }
        firstNames.insert(name, at: index)
        if firstNames.count > Self.namesShownMax { firstNames.removeLast() }
    }

    /// Puts in a store that nobody expected, as the log tells of it.
    mutating func insert(_ store: StoreRecord, named name: StoreName) {
        if case .initial(let initial, _) = store.base { expect(name, initial: initial) }
        initialBytes -= stores[name]?.initialBytes ?? 0
        begin(store, named: name)
    }

    /// Puts in a store as a checkpoint has it.
    mutating func restore(_ store: StoreRecord, named name: StoreName) {
        insert(store, named: name)
        stores[name]?.globalBase = store.globalBase
    }

    /// Its first state is needed no more.
    mutating func forgetInitial(of name: StoreName) {
        initialBytes -= stores[name]?.initialBytes ?? 0
    }

    /// A life is over. Its state stays seen: the log has entries of it.
    mutating func end(_ name: StoreName, life: SequenceNumber) {
        guard let store = stores[name], store.life == life else { return }
        initialBytes -= store.initialBytes
        stores[name] = nil
        if name.instance != .shared { forget(name.description) }
    }

    private mutating func forget(_ name: String) {
        lastingNameCount -= 1
        guard let index = firstNames.firstIndex(of: name) else { return }
        firstNames.remove(at: index)
        // The next one behind them takes its place.
        guard let last = firstNames.last, lastingNameCount > firstNames.count else { return }
        let named = stores.keys.lazy.filter { $0.instance != .shared }.map(\.description)
        let behind = [
            named.filter { $0 > last }.min(), seen.lazy.map(\.text).filter { $0 > last }.min(),
        ]
        if let next = behind.compactMap({ $0 }).min() { firstNames.append(next) }
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
        remember(state.text)
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
        let bridged =
            unseenBridgeCount > 0
            ? bridges.keys.lazy.filter { !seen.contains($0) }.map(\.text) : []
        let names = (firstNames + bridged).sorted()
        let count = lastingNameCount + unseenBridgeCount
        guard count > 0 else { return "none yet" }
        let shown = names.prefix(Self.namesShownMax)
        let text = shown.joined(separator: ", ")
        return count > shown.count ? "\(text) and \(count - shown.count) more" : text
    }
}
