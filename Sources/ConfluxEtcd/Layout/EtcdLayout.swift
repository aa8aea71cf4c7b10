import ConfluxLog
import ConfluxVocabulary

/// The keys of a log. docs/etcd.md describes their values.
struct EtcdLayout {
    /// The version of the format below the prefix.
    static let version: UInt64 = 2
    /// The names of a log's keys directly below its prefix.
    static let names: Set<String> = [
        "change", "checkpoints", "commits", "end", "epoch", "floor", "large", "meta", "parts",
        "serving", "snapshots", "standbys", "uploads",
    ]

    private let prefix: String

    init(_ address: EtcdAddress) {
        prefix = address.prefix + "/"
    }

    var all: EtcdRange { .below(prefix) }
    /// The keys of the log itself. Another log's prefix may be below this log's prefix.
    var own: [EtcdRange] {
        Self.names.sorted().flatMap { [.key(prefix + $0), .below(prefix + $0 + "/")] }
    }
    var meta: String { prefix + "meta" }
    var epoch: String { prefix + "epoch" }
    var change: String { prefix + "change" }
    var end: String { prefix + "end" }
    var floor: String { prefix + "floor" }

    // MARK: Sequencers

    /// The words of the serving sequencer.
    var serving: String { prefix + "serving" }
    private var standbyFolder: String { prefix + "standbys/" }
    var standbys: EtcdRange { .below(standbyFolder) }
    /// The words of the standby with an address.
    func standby(_ address: String) -> String { standbyFolder + address }
    /// The address in a standby's key.
    func standbyAddress(at key: String) -> String { String(key.dropFirst(standbyFolder.count)) }

    // MARK: Commits

    private var commits: String { prefix + "commits/" }
    private var large: String { prefix + "large/" }

    /// Commits that were appended together, by their last number.
    func record(_ last: SequenceNumber) -> String { commits + Self.hex(last.rawValue) }

    /// The records that end at a number or above.
    func records(from number: SequenceNumber) -> EtcdRange {
        EtcdRange(first: record(number), end: EtcdRange.after(commits))
    }

    /// The records that end at a number or below.
    func records(through last: SequenceNumber) -> EtcdRange {
        EtcdRange(first: commits, end: record(last) + "0")
    }

    /// The parts of data that was too large for one value.
    func largeParts(_ last: SequenceNumber, _ tag: UInt64) -> String {
        large + Self.hex(last.rawValue) + "/" + Self.hex(tag) + "/"
    }

    func large(through last: SequenceNumber) -> EtcdRange {
        EtcdRange(first: large, end: large + Self.hex(last.rawValue) + "0")
    }

    func large(behind last: SequenceNumber) -> EtcdRange {
        EtcdRange(first: large + Self.hex(last.rawValue) + "0", end: EtcdRange.after(large))
    }

    // MARK: Checkpoints and snapshots

    var checkpoints: String { prefix + "checkpoints/" }
    func checkpoint(_ sequence: SequenceNumber) -> String {
        checkpoints + Self.hex(sequence.rawValue)
    }

    var snapshots: String { prefix + "snapshots/" }
    func snapshots(of store: StoreName) -> String { snapshots + "\(store)/" }
    func snapshot(_ key: SavedSnapshot.Key) -> String {
        snapshots(of: key.store) + Self.hex(key.life.rawValue) + "/"
            + Self.hex(key.sequence.rawValue)
    }

    /// The snapshot that a key of the list names.
    func snapshot(at key: String) -> SavedSnapshot.Key? {
        let parts = key.dropFirst(snapshots.count).split(separator: "/")
        guard parts.count == 4, let store = StoreName("\(parts[0])/\(parts[1])"),
            let life = UInt64(parts[2], radix: 16), let sequence = UInt64(parts[3], radix: 16)
        else { return nil }
        return SavedSnapshot.Key(
            store: store, life: SequenceNumber(life), sequence: SequenceNumber(sequence))
    }

    /// The store that a key of the list names, as far as it can be read.
    func store(at key: String) -> StoreName? {
        let parts = key.dropFirst(snapshots.count).split(separator: "/")
        return parts.count < 2 ? nil : StoreName("\(parts[0])/\(parts[1])")
    }

    /// The number at the end of a key.
    static func number(endingIn key: String) -> UInt64? {
        UInt64(key.suffix(16), radix: 16)
    }

    // MARK: Parts

    private var parts: String { prefix + "parts/" }
    func parts(_ id: Identifier) -> String { parts + "\(id)/" }

    /// The key of a part, by the offset at which the part ends.
    static func part(_ folder: String, endingAt offset: UInt64) -> String { folder + hex(offset) }

    var uploads: String { prefix + "uploads/" }
    var checkpointUpload: String { uploads + "checkpoint" }
    func upload(of store: StoreName) -> String { uploads + "snapshots/\(store)" }

    private static func hex(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
