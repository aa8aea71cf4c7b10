import ConfluxHashing
import ConfluxVocabulary

@testable import ConfluxProtocol

/// The messages about snapshots, digests, freezing and skipping.
extension GoldenSample {
    private static let state = #"{"count":5}"#
    private static let place = SnapshotPlace(
        store: counter, life: SequenceNumber(4), sequence: SequenceNumber(9))

    static let reference = SnapshotReference(
        sequence: place.sequence, schemaVersion: 1, digest: Digest(of: utf8(state)),
        byteCount: UInt64(state.utf8.count))

    static let snapshotsOfNodes: [GoldenSample] = [
        GoldenSample(
            "load",
            .node(
                .load(
                    Load(
                        request: 6, place: place, offset: 0, limitBytes: 65_536,
                        acknowledged: 0x0102_0304_0506_0708)))),
        GoldenSample(
            "digest, a vote",
            .node(
                .digest(
                    .vote(
                        Vote(
                            place: place, schemaVersion: 1, digest: reference.digest,
                            refusals: refusals, byteCount: reference.byteCount))))),
        GoldenSample(
            "digest, where states differ",
            .node(
                .digest(.located(DigestReport.Location(place: place, path: "/list/2/a~1b"))))),
        GoldenSample(
            "snapshot",
            .node(
                .snapshot(
                    SnapshotChunk(
                        place: place, offset: 3, byteCount: reference.byteCount,
                        bytes: utf8(state).dropFirst(3).prefix(5))))),
        GoldenSample("snapshot, there is none", .node(.snapshot(.none(of: place)))),
        GoldenSample(
            "skip",
            .node(.skip(Skip(request: 7, sequence: SequenceNumber(16), target: .store(counter))))),
        GoldenSample(
            "freeze",
            .node(
                .freeze(
                    Freeze(request: 8, store: counter, life: SequenceNumber(4), isFrozen: true)))),
        GoldenSample(
            "freeze, thawing",
            .node(
                .freeze(
                    Freeze(request: 9, store: counter, life: SequenceNumber(4), isFrozen: false)))),
    ]

    static let snapshotsOfSequencers: [GoldenSample] = [
        GoldenSample(
            "snapshot served",
            .sequencer(
                .snapshotServed(
                    SnapshotServed(
                        request: 6, deliveryTag: 0x1112_1314_1516_1718,
                        chunk: SnapshotChunk(
                            place: place, offset: 0, byteCount: reference.byteCount,
                            bytes: utf8(state)))))),
        GoldenSample(
            "snapshot request",
            .sequencer(
                .snapshotRequest(SnapshotRequest(place: place, offset: 3, limitBytes: 5)))),
        GoldenSample(
            "divergence",
            .sequencer(
                .divergence(
                    Divergence(
                        store: counter, life: SequenceNumber(4), lastEqual: SequenceNumber(7),
                        reference: reference, isMajority: true, mustReload: true)))),
        GoldenSample("reload", .sequencer(.reload(Reload(place: place)))),
    ]

    /// The digest of the numbers 6 and 8.
    private static let refusals: Digest = {
        var hasher = DigestHasher()
        for number in [6, 8] as [UInt64] { hasher.update(number) }
        return hasher.finish()
    }()
}
