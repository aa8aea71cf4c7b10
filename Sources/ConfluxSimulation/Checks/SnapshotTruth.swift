import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// What is true of snapshots: which were confirmed, what replicas said, and which were spoilt.
final class SnapshotTruth {
    private struct Agreed {
        var snapshot: SavedSnapshot
        var bytes: Bytes
        /// Whose log it is of, and which commit of it: an earlier copy may bring back what was lost.
        var log: LogID
        var commit: Commit?

        /// Whether it is of this history.
        func belongs(to branch: Branch) -> Bool {
            branch.log == log && snapshot.sequence <= branch.last
                && branch.commit(containing: snapshot.sequence) == commit
        }
    }

    private var confirmed: [SavedSnapshot.Key: (bytes: Bytes, version: UInt32)] = [:]
    /// What spoilt replicas had the majority for: it is what the store is from then on.
    private var agreed: [Agreed] = []
    /// The stores of which a replica was spoilt.
    private(set) var spoilt: Set<StoreName> = []
    /// By place, who said what, and what had the majority of its version at some time.
    private var votes: [SnapshotPlace: [Incarnation: Vote]] = [:]
    private var majorities: [SnapshotPlace: Set<Digest>] = [:]

    func spoil(_ store: StoreName) { spoilt.insert(store) }

    /// Another tenure, or another history, begins: what was said counts no more.
    func forgetVotes() {
        votes = [:]
        majorities = [:]
    }

    func hear(_ vote: Vote, of incarnation: Incarnation) {
        guard votes[vote.place]?[incarnation] == nil else { return }
        votes[vote.place, default: [:]][incarnation] = vote
        // Replicas of another version say nothing of this one (rule 18).
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

    /// A snapshot is whole: it must have its digest, and be the store's state (rule 19).
    func saved(
        _ snapshot: SavedSnapshot, _ bytes: Bytes, in branch: Branch
    ) throws(Violation) {
        guard Digest(of: bytes) == snapshot.digest, UInt64(bytes.count) == snapshot.byteCount else {
            throw Violation(
                promise: "snapshot", message: "\(snapshot.key) was saved and is not what was voted")
        }
        guard snapshot.kind == .confirmed,
            let history = branch.history(of: snapshot.store, life: snapshot.life)
        else { return }
        if !history.isRight(snapshot.digest, of: snapshot.schemaVersion, at: snapshot.sequence) {
            let place = SnapshotPlace(
                store: snapshot.store, life: snapshot.life, sequence: snapshot.sequence)
            guard spoilt.contains(snapshot.store),
                majorities[place]?.contains(snapshot.digest) == true
            else {
                throw Violation(
                    promise: "snapshot",
                    message: "\(snapshot.key) was confirmed, and differs from the log")
            }
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

    /// The log has another history: what was agreed in what it still has, or has again, stays so.
    func restate(in branch: Branch) {
        forgetVotes()
        for agreed in agreed where agreed.belongs(to: branch) { add(agreed, to: branch) }
    }
}
