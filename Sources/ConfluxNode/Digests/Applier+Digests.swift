import Conflux
import ConfluxProtocol

/// Digest points and divergence, in this node (rules 18 and 22).
extension Applier {
    /// Says what a store is at its digest point. What takes long is done in the background; the lane
    /// gives a copy of the state, and what had no effect up to there.
    func digest(at place: SnapshotPlace) {
        guard let hosted = appliers[place.store.state]?.hosted(place.store) else { return }
        let (tell, shelf, background, resets) = (tell, shelf, background, resets)
        let (schemaVersion, refused) = (hosted.schemaVersion, hosted.refused)
        hosted.copy { encoding in
            guard let encoding else { return }
            let refusals = refused.take()
            background {
                // A state that can't be encoded has no vote: where none has, the sequencer says so.
                guard let bytes = try? encoding(), !bytes.isEmpty else { return }
                let digest = Digest(of: bytes)
                let byteCount = UInt64(bytes.count)
                shelf.keep(bytes, at: place)
                tell(
                    .digested(
                        Vote(
                            place: place, schemaVersion: schemaVersion, digest: digest,
                            refusals: refusals, byteCount: byteCount), resets: resets))
            }
        }
    }

    /// Finds where the state here differs from another at the same digest point, and tells.
    func compare(_ divergence: Divergence, with other: Bytes?) {
        let (tell, shelf, announce) = (tell, shelf, announce)
        background {
            let path = Self.difference(shelf.encoding(at: divergence.place), other)
            announce(.diverged(StateDivergence(divergence, path: path)))
            guard let path else { return }
            tell(.located(DigestReport.Location(place: divergence.place, path: path)))
        }
    }

    /// The first key path at which two encodings differ; nil where one of them is not to be had, or
    /// they are the same.
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
