import ConfluxVocabulary

/// Leaving in good order.
extension SequencerMachine {
    /// A node is about to leave. The stores that only it can vote for get a snapshot first, so that a newer program can
    /// begin where this one ends.
    mutating func leaving(
        _ leaving: Leaving, of incarnation: Incarnation, on connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        let asker = Asker(connection: connection, request: leaving.request)
        // A session leaves once. Whoever says so again gets no further snapshot for that.
        let names = departures[incarnation] == .some(nil) ? [] : unsaved(by: incarnation)
        departures[incarnation] = .some(names.isEmpty ? nil : asker)
        guard !names.isEmpty else {
            confirm(tenure.last, to: asker, into: &effects)
            return
        }
        for name in names { directory.change(name) { $0.point.want() } }
    }

    /// Lets those leave whose stores have their snapshots.
    mutating func reviewDepartures(into effects: inout [SequencerEffect]) {
        for (incarnation, asker) in departures.sorted(by: { $0.key < $1.key }) {
            guard sessions[incarnation]?.presence == .live else {
                departures[incarnation] = nil
                continue
            }
            guard let asker, unsaved(by: incarnation).isEmpty else { continue }
            departures[incarnation] = .some(nil)
            confirm(tenure.last, to: asker, into: &effects)
        }
    }

    /// The stores of which only this node can give a snapshot, and whose snapshot lacks entries.
    private func unsaved(by incarnation: Incarnation) -> [StoreName] {
        (directory.hosting[incarnation]?.stores ?? []).filter { name in
            guard let life = directory.life(of: name), !life.isFrozenAtAdmission,
                life.voters == [incarnation]
            else { return false }
            return directory.stamp(of: name) > life.record.baseSequence && !life.work.hasFailedTwice
        }.sorted()
    }
}
