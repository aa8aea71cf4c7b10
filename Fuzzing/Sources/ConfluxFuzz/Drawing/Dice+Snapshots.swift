import ConfluxHashing
import ConfluxVocabulary

@testable import ConfluxProtocol

/// Parts of messages about snapshots and digests.
extension Dice {
    mutating func place(_ known: Surroundings) -> SnapshotPlace {
        SnapshotPlace(
            store: storeName(), life: SequenceNumber(max(life(known).rawValue, 1)),
            sequence: SequenceNumber(max(sequence(known).rawValue, 1)))
    }

    mutating func load(_ known: Surroundings) -> Load {
        Load(
            request: request(known), place: place(known), offset: number(near: [0, 2]),
            limitBytes: UInt32(byte()))
    }

    mutating func report(_ known: Surroundings) -> DigestReport {
        guard below(4) > 0 else {
            return .located(DigestReport.Location(place: place(known), path: text()))
        }
        return .vote(
            Vote(
                place: place(known), schemaVersion: version(), digest: digest(),
                refusals: Digest(of: [UInt8(below(2))]), byteCount: max(number(near: [2]), 1)))
    }

    mutating func chunk(_ known: Surroundings) -> SnapshotChunk {
        let bytes = bytes(upTo: 8)
        let offset = UInt64(below(4))
        return SnapshotChunk(
            place: place(known), offset: offset,
            byteCount: offset + UInt64(bytes.count + below(4)), bytes: bytes[...])
    }

    mutating func reference(_ known: Surroundings) -> SnapshotReference {
        SnapshotReference(
            sequence: sequence(known), schemaVersion: version(), digest: digest(),
            byteCount: max(number(near: [2]), 1))
    }

    mutating func offer(_ known: Surroundings) -> SnapshotOffer {
        guard flag() else { return .saved(reference(known)) }
        return .whole(
            Snapshot(sequence: sequence(known), schemaVersion: version(), state: state()))
    }

    mutating func divergence(_ known: Surroundings) -> Divergence {
        let place = place(known)
        return Divergence(
            store: place.store, life: place.life, lastEqual: sequence(known),
            reference: reference(known), isMajority: flag(), mustReload: flag())
    }

    /// The digest of the state that honest replicas have, or another one.
    mutating func digest() -> Digest {
        Digest(of: flag() ? [0x5B, 0x5D] : [byte()] as [UInt8])
    }
}
