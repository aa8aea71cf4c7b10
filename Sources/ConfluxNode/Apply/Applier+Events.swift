import Conflux
import ConfluxProtocol

/// What the log's own events mean for the stores here.
extension Applier {
    /// - Parameters:
    ///   - event: The event.
    ///   - sequence: Its number.
    ///   - isCatchUp: Whether the commit is one that stores catch up with.
    ///   - only: The only store that it is for; nil for all that it concerns.
    ///   - dropped: Gets the stores whose life ends here.
    ///   - points: Gets the digest points of stores here.
    func apply(
        _ event: LogEvent, at sequence: SequenceNumber, isCatchUp: Bool, only: StoreName?,
        _ dropped: inout [StoreName], _ points: inout [SnapshotPlace]
    ) {
        switch event {
        case .dropped(let store, let life):
            guard let hosted = hosted(store, life, isCatchUp: isCatchUp, only: only) else { return }
            hosted.isDropped = true
            dropped.append(store)
        case .frozen(let store, let life, _):
            guard let hosted = hosted(store, life, isCatchUp: isCatchUp, only: only),
                sequence > hosted.restoredAt
            else { return }
            hosted.isFrozen = true
        case .thawed(let store, let life):
            hosted(store, life, isCatchUp: isCatchUp, only: only)?.isFrozen = false
        case .digestPoint(let store, let life):
            guard let hosted = hosted(store, life, isCatchUp: isCatchUp, only: only),
                sequence > hosted.lastPoint, hosted.stopped == nil, !hosted.isDropped,
                !hosted.isStale
            else { return }
            hosted.lastPoint = sequence
            points.append(SnapshotPlace(store: store, life: life, sequence: sequence))
        case .skipped(let skipped, let target):
            for applier in appliers.values {
                for hosted in applier.hosted(concernedBy: target)
                where hosted.gets(isCatchUp: isCatchUp, only: only) {
                    skip(skipped, of: hosted)
                }
            }
        case .claim, .joined, .left, .forgotten, .created, .upgraded: break
        }
    }

    /// A store here that a commit is applied to.
    private func hosted(
        _ store: StoreName, _ life: SequenceNumber, isCatchUp: Bool, only: StoreName?
    ) -> (any HostedReplica)? {
        guard let hosted = appliers[store.state]?.hosted(store), hosted.life == life,
            hosted.gets(isCatchUp: isCatchUp, only: only)
        else { return nil }
        return hosted
    }

    /// An entry has no effect (rule 23). A store that stopped there, or has applied it, begins anew.
    private func skip(_ sequence: SequenceNumber, of hosted: any HostedReplica) {
        guard sequence > hosted.restoredAt, !hosted.skips.contains(sequence) else { return }
        hosted.skips.insert(sequence)
        let isPassed = hosted.lastChange >= sequence
        if isPassed { hosted.isStale = true }
        if isPassed || hosted.stoppedAt == sequence { tell(.reload(hosted.name)) }
    }
}
