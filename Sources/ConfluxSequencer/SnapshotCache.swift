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
    /// How many snapshots of a store are known: those that the log keeps, and one to compare with.
    private static let perStoreMax = 4

    /// The sizes of those that the log has, or had a moment ago, newest last.
    private var sizes: [StoreName: [SavedSnapshot]] = [:]
    private var parts: [Place: Bytes] = [:]
    /// In the order in which they were read.
    private var order: [Place] = []
    private(set) var byteCount = 0

    func size(of key: SavedSnapshot.Key) -> UInt64? {
        sizes[key.store]?.last { $0.key == key }?.byteCount
    }

    mutating func remember(_ snapshot: SavedSnapshot) {
        var known = sizes[snapshot.store] ?? []
        // Where both have one number the log keeps what matters more.
        let rank = { (kind: SavedSnapshot.Kind) in
            switch kind {
            case .compared: 0
            case .aside: 1
            case .confirmed: 2
            }
        }
        if known.contains(where: {
            $0.key == snapshot.key && rank($0.kind) > rank(snapshot.kind)
        }) {
            return
        }
        known.removeAll { $0.key == snapshot.key }
        known.append(snapshot)
        // What is kept aside, or only compared with, is replaced again and again while the snapshot
        // that openers begin with stays: one kind does not push out another.
        let former = known.filter { $0.kind == snapshot.kind }.dropLast(Self.perStoreMax)
        sizes[snapshot.store] = known.filter { !former.contains($0) }
        // One of the same number may have been replaced.
        drop { $0.key == snapshot.key }
    }

    mutating func remove(_ store: StoreName) {
        sizes[store] = nil
        drop { $0.key.store == store }
    }

    func part(of key: SavedSnapshot.Key, at offset: UInt64) -> Bytes? {
        parts[Place(key: key, offset: offset)]
    }

    mutating func keep(_ bytes: Bytes, of key: SavedSnapshot.Key, at offset: UInt64) {
        let place = Place(key: key, offset: offset)
        guard parts.updateValue(bytes, forKey: place) == nil else { return }
        order.append(place)
        byteCount += bytes.count
        var count = 0
        while byteCount > Self.bytesMax, count < order.count {
            byteCount -= parts.removeValue(forKey: order[count])?.count ?? 0
            count += 1
        }
        order.removeFirst(count)
    }

    private mutating func drop(_ isStale: (Place) -> Bool) {
        for place in order where isStale(place) {
            byteCount -= parts.removeValue(forKey: place)?.count ?? 0
        }
        order.removeAll(where: isStale)
    }
}
