import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Digest points and divergence, in this node (rules 18 and 22).
extension Applier {
    /// Has a store's state copied at its digest point, behind what its lane has. The report with
    /// the copy follows the reports of all entries up to there that had no effect.
    func digest(at place: SnapshotPlace) {
        guard let replica = replica(place.store) else { return }
        let (reports, request) = (replica.progress.reports, replica.progress.request)
        reports.expect()
        replica.lane.copy { reports.add(.copied(request: request, place, $0)) }
        collect(replica.progress)
    }

    /// Reports a store's digest at its digest point. What takes long is done in the background.
    func vote(at place: SnapshotPlace, _ encoding: Encoding?, refusals: Digest) {
        guard let encoding, let replica = replica(place.store), replica.life == place.life else {
            return
        }
        let (tell, shelf, resets) = (tell, shelf, progress.resets)
        let schemaVersion = replica.lane.schemaVersion
        background {
            // A state that can't be encoded has no vote. If no replica has a vote, the sequencer
            // reports that.
            guard let bytes = try? encoding(), !bytes.isEmpty else { return }
            let vote = Vote(
                place: place, schemaVersion: schemaVersion, digest: Digest(of: bytes),
                refusals: refusals, byteCount: UInt64(bytes.count))
            shelf.keep(bytes, at: place)
            tell(.reported(.digested(vote), resets: resets))
        }
    }

    /// Finds where this node's state differs from another at the same digest point, and reports it.
    func compare(_ divergence: Divergence, with other: Bytes?) {
        if divergence.mustReload { replica(divergence.store)?.progress.letGo() }
        let (tell, shelf, announce, resets) = (tell, shelf, announce, progress.resets)
        background {
            let path = Self.difference(shelf.encoding(at: divergence.place), other)
            announce(.diverged(StateDivergence(divergence, path: path)))
            guard let path else { return }
            let location = DigestReport.Location(place: divergence.place, path: path)
            tell(.reported(.located(location), resets: resets))
        }
    }

    /// The first key path at which two encodings differ; nil if one of them is missing, or they are
    /// equal.
    private static func difference(_ own: [UInt8]?, _ other: Bytes?) -> String? {
        guard let own, let other, own[...] != other else { return nil }
        do {
            let (left, right) = (try JSONValue(json: own), try JSONValue(json: Array(other)))
            return left.firstDifference(from: right).map { "\($0)" }
        } catch {
            return nil
        }
    }
}
