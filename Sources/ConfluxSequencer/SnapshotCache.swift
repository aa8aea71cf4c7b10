import ConfluxLog
import ConfluxVocabulary

/// Parts of snapshots that were read lately, since many nodes that start at once read the same parts. The key has
/// everything that the log records about a snapshot, so that a snapshot is never mistaken for one that it replaced.
struct SnapshotCache {
    private struct Place: Hashable {
        var snapshot: SavedSnapshot
        var offset: UInt64
    }

    /// The most bytes to keep. *At the bound* the parts that were read first are dropped.
    static let bytesMax = 32 << 20
    private var parts: [Place: Bytes] = [:]
    /// In the order in which they were read.
    private var order: [Place] = []
    private(set) var byteCount = 0

    func part(of snapshot: SavedSnapshot, at offset: UInt64) -> Bytes? {
        parts[Place(snapshot: snapshot, offset: offset)]
    }

    mutating func keep(_ bytes: Bytes, of snapshot: SavedSnapshot, at offset: UInt64) {
        let place = Place(snapshot: snapshot, offset: offset)
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

    /// How many bytes a part counts. A minimum bounds the number of parts, in case a reader asks for single bytes.
    private static func cost(of bytes: Bytes) -> Int { max(bytes.count, 1_024) }
}
