import ConfluxLog
import ConfluxVocabulary

/// Parts of snapshots that were read lately: many nodes that begin at once read the same ones. A part
/// is found by all that the log says of its snapshot, so that one that took the place of another is
/// never mistaken for it.
struct SnapshotCache {
    private struct Place: Hashable {
        var snapshot: SavedSnapshot
        var offset: UInt64
    }

    /// The most bytes that are kept. *At the bound* those that were read first are dropped.
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

    /// What a part takes, also one that somebody asked for byte by byte.
    private static func cost(of bytes: Bytes) -> Int { max(bytes.count, 1_024) }
}
