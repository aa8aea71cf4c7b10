import ConfluxVocabulary

@testable import ConfluxProtocol

/// Messages about snapshots and digests, in words. Digests are left out, since they mean nothing to a reader.
extension Narration {
    func words(of place: SnapshotPlace) -> String { "\(place.store) at \(place.sequence)" }

    func words(of part: SnapshotPart) -> String {
        "\(part.bytes.count) bytes of \(words(of: part.place)) from \(part.offset)"
            + (part.isConfirmed ? "" : ", not confirmed")
    }

    func words(of chunk: SnapshotChunk) -> String {
        guard !chunk.isNone else { return "\(words(of: chunk.place)) is not there" }
        return "\(chunk.bytes.count) of \(chunk.byteCount) bytes of \(words(of: chunk.place)) "
            + "from \(chunk.offset)"
    }

    func words(of snapshot: SnapshotOffer?) -> String {
        switch snapshot {
        case .whole(let snapshot): ", snapshot at \(snapshot.sequence)"
        case .saved(let reference):
            ", snapshot of \(reference.byteCount) bytes at \(reference.sequence)"
        case nil: ""
        }
    }

    func words(of report: DigestReport) -> String {
        switch report {
        case .vote(let vote): "vote for \(words(of: vote.place)), \(vote.byteCount) bytes"
        case .located(let location): "differs at \(location.path) in \(words(of: location.place))"
        }
    }

    func words(of divergence: Divergence) -> String {
        "divergence of \(words(of: divergence.place)), equal at \(divergence.lastEqual)"
            + (divergence.isMajority ? "" : ", without a majority")
            + (divergence.mustReload ? ", reload" : "")
    }

    func words(of status: DivergenceStatus) -> String {
        "equal at \(status.lastEqual), not at \(status.firstUnequal), nodes "
            + status.nodes.map { "\($0)" }.joined(separator: " ")
            + (status.isMajority ? "" : ", without a majority")
            + (status.path.map { ", at \($0)" } ?? "")
    }
}
