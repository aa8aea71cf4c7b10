import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// The truth about snapshots: which were confirmed, what replicas reported, and which replicas were
/// corrupted.
final class SnapshotTruth {
    private struct Agreed {
        var snapshot: SavedSnapshot
        var bytes: Bytes
        /// The log and the commit that the state belongs to: an earlier copy of the log may bring a lost
        /// commit back.
        var log: LogID
        var commit: Commit?

        /// Whether it belongs to this history.
        func belongs(to branch: Branch) -> Bool {
            branch.log == log && snapshot.sequence <= branch.last
                && branch.commit(containing: snapshot.sequence) == commit
        }
    }

    private var confirmed: [SavedSnapshot.Key: (bytes: Bytes, version: UInt32)] = [:]
    /// The states for which corrupted replicas had the majority. From then on each is the store's state.
    private var agreed: [Agreed] = []
    /// The stores of which a replica was corrupted.
    private(set) var spoilt: Set<StoreName> = []
    /// For each place: the votes, and the digests that had a majority of their version at some time.
    private var votes: [SnapshotPlace: [Incarnation: Vote]] = [:]
    private var majorities: [SnapshotPlace: Set<Digest>] = [:]

    func spoil(_ store: StoreName) { spoilt.insert(store) }

    /// Forgets votes, since another term or another history begins.
    func forgetVotes() {
        votes = [:]
        majorities = [:]
    }

    func hear(_ vote: Vote, of incarnation: Incarnation) {
        guard votes[vote.place]?[incarnation] == nil else { return }
        votes[vote.place, default: [:]][incarnation] = vote
        // Replicas of another version say nothing about this one (rule 18).
        let all = votes[vote.place]?.values.filter { $0.schemaVersion == vote.schemaVersion } ?? []
        if all.count(where: { $0.digest == vote.digest }) * 2 > all.count {
            majorities[vote.place, default: []].insert(vote.digest)
        }
    }

    func state(
        _ store: StoreName, _ life: SequenceNumber, _ sequence: SequenceNumber
    ) -> (bytes: Bytes, version: UInt32)? {
        confirmed[SavedSnapshot.Key(store: store, life: life, sequence: sequence)]
    }

    /// Checks a complete snapshot: it must match its digest, and be the store's state (rule 19).
    func saved(
        _ snapshot: SavedSnapshot, _ bytes: Bytes, in branch: Branch
    ) throws(Violation) {
        try require(
            Digest(of: bytes) == snapshot.digest && UInt64(bytes.count) == snapshot.byteCount,
            "snapshot", "\(snapshot.key) was saved and is not what was voted")
        guard snapshot.kind == .confirmed,
            let history = branch.history(of: snapshot.store, life: snapshot.life)
        else { return }
        if !history.isRight(snapshot.digest, of: snapshot.schemaVersion, at: snapshot.sequence) {
            let place = SnapshotPlace(
                store: snapshot.store, life: snapshot.life, sequence: snapshot.sequence)
            try require(
                spoilt.contains(snapshot.store)
                    && majorities[place]?.contains(snapshot.digest) == true, "snapshot",
                "\(snapshot.key) was confirmed, and differs from the log")
            agreed.append(
                Agreed(
                    snapshot: snapshot, bytes: bytes, log: branch.log,
                    commit: branch.commit(containing: snapshot.sequence)))
            add(agreed[agreed.count - 1], to: branch)
        }
        confirmed[snapshot.key] = (bytes, snapshot.schemaVersion)
    }

    private func add(_ agreed: Agreed, to branch: Branch) {
        branch.history(of: agreed.snapshot.store, life: agreed.snapshot.life)?.begin(
            agreed.bytes, of: agreed.snapshot.schemaVersion, at: agreed.snapshot.sequence,
            as: agreed.snapshot.schemaVersion)
    }

    /// Moves to another history of the log. Agreed states stay agreed if that history has their commits.
    func restate(in branch: Branch) {
        forgetVotes()
        for agreed in agreed where agreed.belongs(to: branch) { add(agreed, to: branch) }
    }
}
