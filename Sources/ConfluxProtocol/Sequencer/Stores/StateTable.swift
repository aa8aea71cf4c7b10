import ConfluxVocabulary

/// What is known of one state, for all its stores together.
struct StateRecord: Sendable, Equatable {
    /// The load of entries for the whole state.
    fileprivate(set) var load = StoreLoad()
    /// The highest schema version of such an entry.
    fileprivate(set) var loggedVersion: UInt32 = 0
    /// Whether the log has, or will have, an entry of the state. *Invariant*: never becomes false
    /// again.
    fileprivate(set) var isSeen = false
    /// The events that its stores handle. *Invariant*: none is ever removed.
    fileprivate(set) var events: Set<Name> = []
    /// How many stores and bridges have each schema version. Stores about to be created count.
    private var counts: [UInt32: Int] = [:]
    /// The name of the key because of which the log has an entry of the state; nil if none did.
    fileprivate(set) var owner: Name?
    /// The live nodes that bridge the state, and the version of each.
    fileprivate(set) var bridges: [Incarnation: Bridge] = [:]
    /// The shapes of the actions, by version, as the last program that sent shapes described them.
    /// *Invariant*: only for versions that a store or a bridge has.
    fileprivate var shapes: [UInt32: Shapes] = [:]
    /// The bytes of the load when its stores were last examined in this term.
    fileprivate var reviewedBytes: UInt64 = 0

    /// The lowest schema version that a store or a bridge has. An action of a higher version would be
    /// newer than one of them. If there are none, the highest version of an action in the log.
    var schemaVersion: UInt32 { counts.keys.min() ?? loggedVersion }

    fileprivate mutating func add(_ version: UInt32) { counts[version, default: 0] += 1 }

    fileprivate mutating func remove(_ version: UInt32) {
        guard let count = counts[version] else { return }
        counts[version] = count > 1 ? count - 1 : nil
        if count == 1 { shapes[version] = nil }
    }

    /// Whose share of the states it counts for: that of the key because of which the log has it, or
    /// else that of the node that has bridged it longest.
    fileprivate var sharer: Sharer? {
        if isSeen { return owner.map { .key($0) } }
        return bridges.min { $0.key < $1.key }?.value.sharer
    }

    fileprivate mutating func bridge(by incarnation: Incarnation, _ bridge: Bridge?) {
        if let former = bridges[incarnation] { remove(former.schemaVersion) }
        bridges[incarnation] = bridge
        if let bridge { add(bridge.schemaVersion) }
    }

    /// A live node's bridge.
    struct Bridge: Sendable {
        var schemaVersion: UInt32
        var sharer: Sharer
    }

    /// The shapes of one version's actions.
    fileprivate struct Shapes: Sendable {
        var bytes: Bytes
        var sharer: Sharer
    }

    fileprivate mutating func raise(to version: UInt32) {
        loggedVersion = max(loggedVersion, version)
    }

    /// Compares only what the log says.
    static func == (left: Self, right: Self) -> Bool {
        left.load == right.load && left.loggedVersion == right.loggedVersion
            && left.isSeen == right.isSeen && left.owner == right.owner
            && left.events == right.events
    }
}

/// The states that are known: those that the log has seen, and those that live nodes bridge.
struct StateTable: Sendable {
    private var records: [Name: StateRecord] = [:]
    private(set) var seenCount = 0
    /// The states that handle each event, ascending. *Invariant*: it matches the records.
    private(set) var handlers: [Name: [Name]] = [:]
    /// How many states are known, each counted once, and whose. *Use*: to bound them.
    private(set) var shares = Shares<Sharer>()
    /// The bytes of all shapes. *Use*: to bound them.
    private(set) var shapesBytes = Shares<Sharer>()
    /// The most bytes of all shapes, which the keys share. Above that, further shapes are not kept, so
    /// actions of these versions can't be checked before they are sent.
    static let shapesBytesMax = 4 << 20

    /// The most events that a state handles, and the most states that handle an event.
    static let eventsMax = 256
    static let handlersMax = 64

    /// How many states are known.
    var count: Int { records.count }
    /// The states that the log has seen.
    var seen: some Sequence<(key: Name, value: StateRecord)> {
        records.lazy.filter { $0.value.isSeen }
    }
    /// The states that are known only because a node bridges them.
    var unseen: some Sequence<Name> { records.lazy.filter { !$0.value.isSeen }.map(\.key) }

    subscript(name: Name) -> StateRecord? { records[name] }

    func checkInvariants() throws(BrokenInvariant) {
        let seen = records.values.count(where: \.isSeen)
        try hold(seen == seenCount, "\(seen) states are seen, and \(seenCount) are counted")
        try hold(shares.total == count, "\(count) states, and \(shares.total) are counted")
        let bytes = records.values.reduce(0) {
            $0 + $1.shapes.values.reduce(0) { $0 + $1.bytes.count }
        }
        try hold(
            shapesBytes.total == bytes,
            "\(bytes) bytes of shapes, and \(shapesBytes.total) are counted")
        let handled = records.values.reduce(0) { $0 + $1.events.count }
        let indexed = handlers.values.reduce(0) { $0 + $1.count }
        try hold(handled == indexed, "\(handled) events are handled, and \(indexed) are indexed")
        for (name, record) in records {
            try hold(record.isSeen || !record.bridges.isEmpty, "nobody knows \(name)")
        }
    }

    /// The newest schema version that an action for the whole state may have; nil if nobody knows the state.
    func schemaVersion(of name: Name) -> UInt32? {
        // In place: a record has several tables.
        records.index(forKey: name).map { records.values[$0].schemaVersion }
    }

    /// - Parameters:
    ///   - name: The state.
    ///   - owner: The name of the key because of which the log has it; nil if none did.
    /// - Returns: Whether the log had not seen it.
    mutating func see(_ name: Name, by owner: Name?) -> Bool {
        if let index = records.index(forKey: name) {
            guard !records.values[index].isSeen else { return false }
        }
        change(name) { record in
            var seen = record ?? StateRecord()
            seen.isSeen = true
            seen.owner = owner
            record = seen
        }
        seenCount += 1
        return true
    }

    /// From now on the stores of a state, which was seen, handle these events, too.
    mutating func handle(_ events: [Name], in state: Name) {
        for event in events where records[state]?.events.insert(event).inserted == true {
            handlers[event] = ((handlers[event] ?? []) + [state]).sorted()
        }
    }

    func handles(_ event: Name, in state: Name) -> Bool {
        records[state]?.events.contains(event) == true
    }

    /// Whether a state may handle these events, too.
    func hasRoom(for events: [Name], in state: Name) -> Bool {
        (records[state]?.events ?? []).union(events).count <= Self.eventsMax
            && events.allSatisfy {
                handles($0, in: state) || handlers[$0]?.count ?? 0 < Self.handlersMax
            }
    }

    /// A store has this version, or will have it.
    mutating func addStore(of name: Name, version: UInt32) {
        records[name]?.add(version)
    }

    mutating func removeStore(of name: Name, version: UInt32) {
        change(name) { $0?.remove(version) }
    }

    mutating func bridge(_ bridge: StateBridge, by incarnation: Incarnation, of sharer: Sharer) {
        let version = bridge.schemaVersion
        change(bridge.state) { record in
            var bridged = record ?? StateRecord()
            bridged.bridge(
                by: incarnation, StateRecord.Bridge(schemaVersion: version, sharer: sharer))
            record = bridged
        }
        guard let shapes = bridge.shapes, shapes.count <= WireLimits.shapesBytesMax else { return }
        let former = records[bridge.state]?.shapes[version]
        change(bridge.state) { $0?.shapes[version] = nil }
        guard shapesBytes.hasRoom(for: sharer, shapes.count, of: Self.shapesBytesMax) else {
            change(bridge.state) { $0?.shapes[version] = former }
            return
        }
        // A copy, since a slice would keep the whole frame in memory.
        let kept = StateRecord.Shapes(bytes: Array(shapes)[...], sharer: sharer)
        change(bridge.state) { $0?.shapes[version] = kept }
    }

    /// The shapes of a state's actions, by version.
    func shapes(of name: Name) -> [ActionShapes] {
        (records[name]?.shapes ?? [:]).sorted { $0.key < $1.key }
            .map { ActionShapes(schemaVersion: $0.key, json: $0.value.bytes) }
    }

    /// Changes a record. Everything that counts for somebody's share changes here and nowhere else.
    private mutating func change(_ name: Name, _ change: (inout StateRecord?) -> Void) {
        count(records[name], by: -1)
        change(&records[name])
        count(records[name], by: 1)
    }

    private mutating func count(_ record: StateRecord?, by factor: Int) {
        guard let record else { return }
        shares.add(factor, of: record.sharer)
        for shapes in record.shapes.values {
            shapesBytes.add(factor * shapes.bytes.count, of: shapes.sharer)
        }
    }

    mutating func endBridge(_ name: Name, by incarnation: Incarnation) {
        change(name) { record in
            record?.bridge(by: incarnation, nil)
            // A state that nobody bridges and the log has never seen is forgotten.
            if let left = record, !left.isSeen, left.bridges.isEmpty { record = nil }
        }
    }

    /// Entries for the whole state are in the log.
    mutating func add(_ load: TargetLoad, to name: Name, from first: SequenceNumber) {
        guard let index = records.index(forKey: name) else { return }
        records.values[index].load.add(load.byteCount, at: first.advanced(by: load.last))
        records.values[index].raise(to: load.schemaVersion)
    }

    /// An entry without an action concerns the whole state.
    mutating func pass(_ name: Name, at sequence: SequenceNumber) {
        records[name]?.load.add(0, at: sequence)
    }

    /// Inserts the load of entries for the whole state from a checkpoint.
    mutating func restore(_ load: StoreLoad, version: UInt32, of name: Name) {
        records[name]?.load = load
        records[name]?.loggedVersion = version
    }

    /// Whether so many entries for the whole state were logged that its stores must be examined.
    mutating func isReviewDue(_ name: Name, bytesMin: UInt64) -> Bool {
        guard let record = records[name],
            record.load.byteCount - record.reviewedBytes >= bytesMin
        else { return false }
        records[name]?.reviewedBytes = record.load.byteCount
        return true
    }
}

extension StateTable: Equatable {
    /// Compares only what the log says.
    static func == (left: Self, right: Self) -> Bool {
        left.seenCount == right.seenCount
            && left.seen.allSatisfy { right.records[$0.key] == $0.value }
    }
}
