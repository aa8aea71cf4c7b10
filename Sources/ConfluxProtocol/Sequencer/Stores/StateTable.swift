import ConfluxVocabulary

/// One state, as all of its stores have it.
struct StateRecord: Sendable, Equatable {
    /// What entries for the whole state make of the log.
    fileprivate(set) var load = StoreLoad()
    /// The highest schema version that such an entry has.
    fileprivate(set) var loggedVersion: UInt32 = 0
    /// Whether the log has, or will have, an entry of the state. *Invariant*: stays once it is so.
    fileprivate(set) var isSeen = false
    /// How many stores, also those that are about to begin, and bridges have each schema version.
    private var counts: [UInt32: Int] = [:]
    /// The live nodes that bridge it, and the version of each.
    fileprivate(set) var bridges: [Incarnation: UInt32] = [:]
    /// The shapes of the actions, by version, as the last program told them that came with it.
    /// *Invariant*: only of versions that a store or a bridge has.
    fileprivate(set) var shapes: [UInt32: Bytes] = [:]
    /// The load when the stores were looked at last in this tenure, in bytes.
    fileprivate var reviewedBytes: UInt64 = 0

    /// The highest schema version that somebody is known to have, or to have had: no replica is older
    /// than what nobody has.
    var schemaVersion: UInt32 { max(loggedVersion, counts.keys.max() ?? 0) }

    fileprivate mutating func add(_ version: UInt32) { counts[version, default: 0] += 1 }

    fileprivate mutating func remove(_ version: UInt32) {
        guard let count = counts[version] else { return }
        counts[version] = count > 1 ? count - 1 : nil
        if count == 1 { shapes[version] = nil }
    }

    fileprivate var shapesBytes: Int { shapes.values.reduce(0) { $0 + $1.count } }

    fileprivate mutating func bridge(by incarnation: Incarnation, version: UInt32?) {
        if let former = bridges[incarnation] { remove(former) }
        bridges[incarnation] = version
        if let version { add(version) }
    }

    fileprivate mutating func raise(to version: UInt32) {
        loggedVersion = max(loggedVersion, version)
    }

    /// Equal in what the log says.
    static func == (left: Self, right: Self) -> Bool {
        left.load == right.load && left.loggedVersion == right.loggedVersion
            && left.isSeen == right.isSeen
    }
}

/// The states that are known: those that the log has seen, and those that live nodes bridge.
struct StateTable: Sendable {
    private var records: [Name: StateRecord] = [:]
    private(set) var seenCount = 0
    /// The bytes of all shapes. *Use*: their bound.
    private(set) var shapesBytes = 0
    /// The most bytes of all shapes: above it nothing is known of an action before it is sent.
    static let shapesBytesMax = 4 << 20

    /// How many are known, each counted once. *Use*: their bound.
    var count: Int { records.count }
    /// Those that the log has seen.
    var seen: some Sequence<(key: Name, value: StateRecord)> {
        records.lazy.filter { $0.value.isSeen }
    }
    /// Those that are known because somebody bridges them.
    var unseen: some Sequence<Name> { records.lazy.filter { !$0.value.isSeen }.map(\.key) }

    subscript(name: Name) -> StateRecord? { records[name] }

    /// - Returns: Whether the log had not seen it.
    mutating func see(_ name: Name) -> Bool {
        guard records[name]?.isSeen != true else { return false }
        records[name, default: StateRecord()].isSeen = true
        seenCount += 1
        return true
    }

    /// A store has, or will have, this version.
    mutating func addStore(of name: Name, version: UInt32) {
        records[name]?.add(version)
    }

    mutating func removeStore(of name: Name, version: UInt32) {
        changeShapes(of: name) { $0?.remove(version) }
    }

    mutating func bridge(_ bridge: StateBridge, by incarnation: Incarnation) {
        let version = bridge.schemaVersion
        changeShapes(of: bridge.state) { record in
            record = record ?? StateRecord()
            record?.bridge(by: incarnation, version: version)
        }
        guard let shapes = bridge.shapes, shapes.count <= WireLimits.shapesBytesMax else { return }
        let former = records[bridge.state]?.shapes[version]?.count ?? 0
        guard shapesBytes - former + shapes.count <= Self.shapesBytesMax else { return }
        // A copy, since the frame that it came in would stay in memory otherwise.
        changeShapes(of: bridge.state) { $0?.shapes[version] = Array(shapes)[...] }
    }

    /// The shapes of a state's actions, by version.
    func shapes(of name: Name) -> [ActionShapes] {
        (records[name]?.shapes ?? [:]).sorted { $0.key < $1.key }
            .map { ActionShapes(schemaVersion: $0.key, json: $0.value) }
    }

    /// Changes what may have shapes: the one place that counts their bytes.
    private mutating func changeShapes(of name: Name, _ change: (inout StateRecord?) -> Void) {
        let former = records[name]?.shapesBytes ?? 0
        change(&records[name])
        shapesBytes += (records[name]?.shapesBytes ?? 0) - former
    }

    mutating func endBridge(_ name: Name, by incarnation: Incarnation) {
        changeShapes(of: name) { $0?.bridge(by: incarnation, version: nil) }
        // What nobody bridges and the log has never seen is not known.
        if let record = records[name], !record.isSeen, record.bridges.isEmpty {
            changeShapes(of: name) { $0 = nil }
        }
    }

    /// Entries for the whole state are in the log.
    mutating func add(_ load: TargetLoad, to name: Name, through last: SequenceNumber) {
        records[name]?.load.add(load.byteCount, at: last)
        records[name]?.raise(to: load.schemaVersion)
    }

    /// Puts in what entries for the whole state made of the log, as a checkpoint has it.
    mutating func restore(_ load: StoreLoad, version: UInt32, of name: Name) {
        records[name]?.load = load
        records[name]?.loggedVersion = version
    }

    /// Whether so much came for the whole state that its stores are to be looked at.
    mutating func isReviewDue(_ name: Name, bytesMin: UInt64) -> Bool {
        guard let record = records[name],
            record.load.byteCount - record.reviewedBytes >= bytesMin
        else { return false }
        records[name]?.reviewedBytes = record.load.byteCount
        return true
    }
}

extension StateTable: Equatable {
    /// Equal in what the log says.
    static func == (left: Self, right: Self) -> Bool {
        left.seenCount == right.seenCount
            && left.seen.allSatisfy { right.records[$0.key] == $0.value }
    }
}
