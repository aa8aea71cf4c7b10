import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// Keeps the encodings of states at their last two digest points in this node. The sequencer asks for
/// them when it wants a snapshot (rule 19), and they are compared if replicas differ (rule 22).
///
/// Their bytes are bounded. *At the bound* the oldest are removed, of any store. Then the sequencer
/// asks other replicas, or asks for the next point.
// Sendable: the mutex guards everything.
package final class EncodingShelf: Sendable {
    private struct Encoding {
        var place: SnapshotPlace
        var bytes: [UInt8]
    }

    private struct Shelf {
        /// The encodings, oldest first.
        var encodings: [Encoding] = []
        var byteCount = 0
    }

    /// How many encodings of one store are kept: the next point may come while a snapshot of one is being read.
    private static let perStoreMax = 2

    private let bytesMax: Int
    private let shelf = Mutex(Shelf())

    /// Makes an empty shelf. *Bound*: `NodeSettings.encodingsBytesMax`.
    package init(bytesMax: Int = NodeSettings().encodingsBytesMax) {
        self.bytesMax = bytesMax
    }

    /// Keeps an encoding. One that is larger than the bound is not kept.
    func keep(_ bytes: [UInt8], at place: SnapshotPlace) {
        guard bytes.count <= bytesMax else { return }
        shelf.withLock { shelf in
            shelf.encodings.append(Encoding(place: place, bytes: bytes))
            shelf.byteCount += bytes.count
            let same = shelf.encodings.indices.filter {
                shelf.encodings[$0].place.store == place.store
            }
            if same.count > Self.perStoreMax { Self.remove(same[0], from: &shelf) }
            while shelf.byteCount > bytesMax { Self.remove(0, from: &shelf) }
        }
    }

    private static func remove(_ index: Int, from shelf: inout Shelf) {
        shelf.byteCount -= shelf.encodings.remove(at: index).bytes.count
    }

    /// Removes the encodings of a store that is no longer hosted here.
    func remove(_ store: StoreName) {
        shelf.withLock { shelf in
            shelf.encodings.removeAll { $0.place.store == store }
            shelf.byteCount = shelf.encodings.reduce(0) { $0 + $1.bytes.count }
        }
    }

    /// The whole encoding at a point, if it is here.
    func encoding(at place: SnapshotPlace) -> [UInt8]? {
        shelf.withLock { shelf in shelf.encodings.last { $0.place == place }?.bytes }
    }

    /// The requested part of an encoding; an empty one if the encoding is not here.
    package func part(_ request: SnapshotRequest) -> SnapshotChunk {
        guard let bytes = encoding(at: request.place), request.offset < UInt64(bytes.count) else {
            return .none(of: request.place)
        }
        let part = bytes.dropFirst(Int(request.offset)).prefix(Int(request.limitBytes))
        return SnapshotChunk(
            place: request.place, offset: request.offset, byteCount: UInt64(bytes.count),
            bytes: part)
    }
}
