import ConfluxVocabulary

/// The stores and states that the sequencer knows: what a target is checked against at the door.
struct StoreDirectory: Sendable, Equatable {
    /// The stores whose `created` entry is in the log.
    private(set) var stores: [StoreName: StoreRecord] = [:]
    /// What entries for whole states make of the log.
    private(set) var globals: [Name: StoreLoad] = [:]
    /// Entries that have no effect (rule 23), ascending. *Invariant*: at most `skipsMax`.
    private(set) var skips: [SkippedEntry] = []
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

    /// Puts in what entries for a whole state made of the log, as a checkpoint has it.
    mutating func restore(_ load: StoreLoad, of state: Name) {
        globals[state] = load
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

/// What the log says of stores.
extension StoreDirectory {
    /// How many skipped entries are known. *At the bound* no further one is skipped.
    static let skipsMax = 1_024

    /// Entries are in the log, the last of them at a number.
    mutating func note(_ loads: [TargetLoad], through last: SequenceNumber) {
        for load in loads {
            switch load.target {
            case .store(let name): stores[name]?.own.add(load.byteCount, at: last)
            case .state(let state):
                see(state)
                globals[state, default: StoreLoad()].add(load.byteCount, at: last)
            case .event: break
            }
        }
    }

    /// An event of a store's present life is in the log; others change nothing.
    mutating func note(_ event: LogEvent, at sequence: SequenceNumber) {
        switch event {
        case .upgraded(let name, let life, let version, let base):
            update(name, life: life, at: sequence) { store, _ in
                store.schemaVersion = max(store.schemaVersion, version)
                store.migratedFrom = base
            }
        case .frozen(let name, let life, let reason):
            update(name, life: life, at: sequence) { store, global in
                store.own.stamp = max(store.own.stamp, global?.stamp ?? .zero)
                store.freezing = StoreRecord.Freezing(
                    sequence: sequence, reason: reason, globalBytes: global?.byteCount ?? 0)
            }
        case .thawed(let name, let life):
            update(name, life: life, at: sequence) { store, global in
                guard let freezing = store.freezing else { return }
                store.globalBase += (global?.byteCount ?? 0) - freezing.globalBytes
                store.freezing = nil
            }
        case .digestPoint(let name, let life):
            guard stores[name]?.life == life else { return }
            let load = load(of: name)
            stores[name]?.lastPoint = sequence
            stores[name]?.pointLoad = load
        case .skipped(let sequence, let target):
            let skip = SkippedEntry(sequence: sequence, target: target)
            guard !skips.contains(skip), skips.count < Self.skipsMax else { return }
            let index = skips.firstIndex { $0.sequence > sequence } ?? skips.count
            skips.insert(skip, at: index)
        case .claim, .joined, .left, .forgotten, .created, .dropped: break
        }
    }

    private mutating func update(
        _ name: StoreName, life: SequenceNumber, at sequence: SequenceNumber,
        _ change: (inout StoreRecord, StoreLoad?) -> Void
    ) {
        guard var store = stores[name], store.life == life else { return }
        change(&store, globals[name.state])
        store.own.stamp = max(store.own.stamp, sequence)
        stores[name] = store
    }

    /// A snapshot is there, and confirmed.
    ///
    /// - Returns: Whether openers begin with it from now on.
    mutating func take(_ reference: SnapshotReference, of place: SnapshotPlace) -> Bool {
        guard var store = stores[place.store], store.life == place.life, store.takes(reference)
        else { return false }
        store.base = .saved(reference)
        if let aside = store.aside, aside.through <= reference.sequence { store.aside = nil }
        stores[place.store] = store
        return true
    }

    /// Entries of a store are kept aside.
    mutating func keep(_ aside: StoreRecord.Aside, of name: StoreName, life: SequenceNumber) {
        guard let store = stores[name], store.life == life, aside.through > store.keptThrough
        else { return }
        stores[name]?.aside = aside
    }

    /// What has a number below the floor is read by nobody any more, but where it is kept aside.
    mutating func forgetSkips(below floor: SequenceNumber) {
        skips = skips.filter { $0.sequence >= floor || isKeptAside($0.sequence, $0.target) }
    }

    /// Whether what is kept aside of a store may have an entry that concerns the target.
    func isKeptAside(_ sequence: SequenceNumber, _ target: Target) -> Bool {
        stores.contains { name, store in
            target.concerns(name) && store.baseSequence < sequence
                && store.aside.map { sequence <= $0.through } == true
        }
    }

    func stamp(of name: StoreName) -> SequenceNumber {
        stores[name]?.stamp(globals[name.state]) ?? .zero
    }

    func load(of name: StoreName) -> UInt64 {
        stores[name]?.load(globals[name.state]) ?? 0
    }

    /// The entries above a store's snapshot that have no effect on it.
    func skips(of name: StoreName) -> [SequenceNumber] {
        guard !skips.isEmpty, let base = stores[name]?.baseSequence else { return [] }
        return skips.lazy.filter { $0.sequence > base && $0.target.concerns(name) }
            .map(\.sequence)
    }
}
