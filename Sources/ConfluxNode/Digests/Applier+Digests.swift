import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Handles digest points and divergence in this node (rules 18 and 22).
extension Applier {
    /// Copies a store at its digest point, after its lane's present work. The report on the copy comes after the reports
    /// on all entries without effect up to the point.
    func digest(at place: SnapshotPlace) {
        guard let replica = replica(place.store) else { return }
        let (reports, request) = (replica.progress.reports, replica.progress.request)
        let version = replica.version
        reports.expect()
        replica.copy { reports.add(.copied(request: request, place, $0, version: version)) }
        collect(replica.progress)
    }

    /// Votes on the state of a store at its digest point. The long parts run in the background.
    func vote(
        at place: SnapshotPlace, _ encoding: Encoding?, version: UInt32, refusals: Digest
    ) {
        guard let encoding, let replica = replica(place.store), replica.life == place.life else {
            return
        }
        let (tell, shelf, resets) = (tell, shelf, progress.resets)
        background {
            // A state that can't be encoded has no vote. If no replica has one, the sequencer reports it.
            guard let bytes = try? encoding(), !bytes.isEmpty else { return }
            let vote = Vote(
                place: place, schemaVersion: version, digest: Digest(of: bytes),
                refusals: refusals, byteCount: UInt64(bytes.count))
            shelf.keep(bytes, at: place)
            tell(.reported(.digested(vote), resets: resets))
        }
    }

    /// Finds where the state here differs from another one at the same digest point, and reports it.
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

    /// The first key path at which two encodings differ; nil if one is missing, or if they are the
    /// same.
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
