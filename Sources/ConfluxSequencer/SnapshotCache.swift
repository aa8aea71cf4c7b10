import ConfluxLog
import ConfluxVocabulary

/// The snapshots that there are, and parts of them that were read lately: many nodes that begin at
/// once read the same ones.
struct SnapshotCache {
    private struct Place: Hashable {
        var key: SavedSnapshot.Key
        var offset: UInt64
    }

    /// The most bytes that are kept. *At the bound* those that were read first are dropped.
    static let bytesMax = 32 << 20
    /// What the log has of each store.
    private var known: [StoreName: [SavedSnapshot]]
    private var parts: [Place: Bytes] = [:]
    /// In the order in which they were read.
    private var order: [Place] = []
    private(set) var byteCount = 0

    /// Makes one for what the log has.
    init(_ snapshots: [SavedSnapshot] = []) {
        known = Dictionary(grouping: snapshots, by: \.store)
    }

    func size(of key: SavedSnapshot.Key) -> UInt64? {
        known[key.store]?.first { $0.key == key }?.byteCount
    }

    /// One is whole in the log; others are there no more for it.
    mutating func remember(_ snapshot: SavedSnapshot) {
        let others = known[snapshot.store] ?? []
        guard !snapshot.gives(wayTo: others) else { return }
        let retired = Set(snapshot.retires(among: others))
        known[snapshot.store] = others.filter { !retired.contains($0) } + [snapshot]
        let stale = Set(retired.map(\.key))
        drop { stale.contains($0.key) }
    }

    mutating func remove(_ store: StoreName) {
        known[store] = nil
        drop { $0.key.store == store }
    }

    func part(of key: SavedSnapshot.Key, at offset: UInt64) -> Bytes? {
        parts[Place(key: key, offset: offset)]
    }

    mutating func keep(_ bytes: Bytes, of key: SavedSnapshot.Key, at offset: UInt64) {
        let place = Place(key: key, offset: offset)
        guard parts.updateValue(bytes, forKey: place) == nil else { return }
        order.append(place)
        byteCount += Self.cost(of: bytes)
        var count = 0
        while byteCount > Self.bytesMax, count < order.count {
            byteCount -= parts.removeValue(forKey: order[count]).map(Self.cost) ?? 0
            count += 1
        }
        order.removeFirst(count)
    }

    /// What a part takes, also one that somebody asked for byte by byte.
    private static func cost(of bytes: Bytes) -> Int { max(bytes.count, 1_024) }

    private mutating func drop(_ isStale: (Place) -> Bool) {
        for place in order where isStale(place) {
            byteCount -= parts.removeValue(forKey: place).map(Self.cost) ?? 0
        }
        order.removeAll(where: isStale)
    }
}
