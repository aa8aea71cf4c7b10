import ConfluxVocabulary

/// Leaving in good order.
extension SequencerMachine {
    /// A node is about to leave. The stores for which only nodes that leave can vote get a snapshot first, so that a newer
    /// program can begin where these end.
    mutating func leaving(
        _ leaving: Leaving, of incarnation: Incarnation, on connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        let asker = Asker(connection: connection, request: leaving.request)
        // A session leaves once. Whoever says so again gets no further snapshot for that.
        let wasLetGo = departures[incarnation] == .some(nil)
        departures[incarnation] = .some(asker)
        let names = wasLetGo ? [] : unsaved(by: incarnation)
        guard !names.isEmpty else {
            departures[incarnation] = .some(nil)
            confirm(term.last, to: asker, into: &effects)
            return
        }
        for name in names {
            let absent = directory.life(of: name)?.voters.filter { !isConnected($0) } ?? []
            directory.change(name) { work in
                work.point.want()
                for voter in absent { work.passOver(voter) }
            }
        }
    }

    /// The hosts that are expected to vote: those that can. If all that are here leave, they don't wait for the others.
    func expectedVoters(of life: StoreLife) -> Set<Incarnation> {
        let voters = life.voters
        let isLeft = isLeft(life) && voters.contains { departures[$0] != nil }
        return Set(isLeft ? voters.filter { isConnected($0) } : voters)
    }

    /// Whether no host that can vote stays: those that have a connection leave.
    private func isLeft(_ life: StoreLife) -> Bool {
        !life.voters.contains { departures[$0] == nil && isConnected($0) }
    }

    private func isConnected(_ incarnation: Incarnation) -> Bool {
        sessions[incarnation].map { $0.connection != nil && !$0.isCutOff } ?? false
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
            confirm(term.last, to: asker, into: &effects)
        }
    }

    /// The stores that this node hosts, of which only nodes that leave can give a snapshot, and whose snapshot lacks entries.
    private func unsaved(by incarnation: Incarnation) -> [StoreName] {
        (directory.hosting[incarnation]?.stores ?? []).filter { name in
            guard let life = directory.life(of: name), !life.isFrozenAtAdmission,
                life.voters.contains(incarnation), isLeft(life)
            else { return false }
            return directory.stamp(of: name) > life.record.baseSequence && !life.work.hasFailedTwice
        }.sorted()
    }
}
