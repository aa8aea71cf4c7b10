import ConfluxVocabulary

@testable import ConfluxProtocol

extension RandomMessages {
    mutating func place() -> SnapshotPlace {
        SnapshotPlace(
            store: storeName(), life: SequenceNumber(start()), sequence: SequenceNumber(start()))
    }

    mutating func reference() -> SnapshotReference {
        SnapshotReference(
            sequence: SequenceNumber(start()), schemaVersion: word(), digest: digest(),
            byteCount: number() | 1)
    }

    mutating func offer() -> SnapshotOffer {
        guard flag() else { return .saved(reference()) }
        return .whole(Snapshot(sequence: sequence(), schemaVersion: word(), state: state()))
    }

    mutating func stopped() -> StoppedStore {
        let place = place()
        return StoppedStore(store: place.store, life: place.life, sequence: place.sequence)
    }

    mutating func report() -> DigestReport {
        guard flag() else {
            return .located(DigestReport.Location(place: place(), path: text()))
        }
        return .vote(
            Vote(
                place: place(), schemaVersion: word(), digest: digest(), refusals: digest(),
                byteCount: number() | 1))
    }

    mutating func load() -> Load {
        Load(
            request: random.next(), place: place(), offset: number(), limitBytes: word(),
            acknowledged: random.next())
    }

    mutating func snapshotRequest() -> SnapshotRequest {
        SnapshotRequest(place: place(), offset: number(), limitBytes: word())
    }

    mutating func chunk() -> SnapshotChunk {
        guard flag() else { return .none(of: place()) }
        let bytes = bytes(40)
        let offset = number() / 2
        let rest = UInt64(Int64.max) - offset - UInt64(bytes.count)
        return SnapshotChunk(
            place: place(), offset: offset,
            byteCount: offset + UInt64(bytes.count) + min(number(), rest), bytes: bytes)
    }

    mutating func skip() -> Skip {
        Skip(request: random.next(), sequence: SequenceNumber(start()), target: target())
    }

    mutating func freeze() -> Freeze {
        Freeze(
            request: random.next(), store: storeName(), life: SequenceNumber(start()),
            isFrozen: flag())
    }

    mutating func divergence() -> Divergence {
        Divergence(
            store: storeName(), life: SequenceNumber(start()), lastEqual: sequence(),
            reference: reference(), isMajority: flag(), mustReload: flag())
    }

    mutating func divergenceStatus() -> DivergenceStatus {
        DivergenceStatus(
            lastEqual: sequence(), firstUnequal: sequence(), nodes: list { $0.incarnation() },
            isMajority: flag(), path: optional { $0.text() })
    }

    mutating func digest() -> Digest {
        Digest { hash in
            for offset in stride(from: 0, to: hash.count, by: 8) {
                hash.storeBytes(of: random.next(), toByteOffset: offset, as: UInt64.self)
            }
        }
    }
}
