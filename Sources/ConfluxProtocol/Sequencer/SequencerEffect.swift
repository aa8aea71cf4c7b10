import ConfluxVocabulary

/// What the sequencer wants done. The shell carries out effects one after another, in their order.
public enum SequencerEffect: Sendable, Equatable {
    /// Find the newest checkpoint at or below a number. Answered by
    /// ``SequencerInput/checkpointRead(_:)``.
    case readCheckpoint(through: SequenceNumber)
    /// Read the log to rebuild the state. Answered by ``SequencerInput/logRead(_:)``.
    case readLog(from: SequenceNumber)
    /// List the snapshots. Answered by ``SequencerInput/snapshotsRead(_:damage:)``.
    case readSnapshots
    /// Append to the log. Answered by ``SequencerInput/appended``. At most one append is under way,
    /// and nobody is told anything about its commits before the answer (rule 13).
    case append(Append)
    /// The term has begun: start to serve the sockets. The feed sends the beat to each new
    /// subscriber as its welcome.
    case serve(Beat)
    /// Publish a commit that is in the log.
    case publishCommit(frame: Bytes)
    /// Publish a beat.
    case publishBeat(Beat)
    /// Send a message. It is lost if the connection has no room for it; the node then asks again.
    case send(SequencerMessage, to: ConnectionID)
    /// Read the log for a node. Answered by ``SequencerInput/read(_:_:)``.
    case read(ReadJob)
    /// Save the next part of a snapshot. Answered by ``SequencerInput/snapshotSaved(_:)``. At most
    /// one part of each life is being saved.
    case saveSnapshot(SnapshotPart)
    /// Keep the entries up to a number that concern these stores beside the log. Answered by
    /// ``SequencerInput/keptAside(_:)``. At most one such job is under way.
    case keepAside([AsideJob], through: SequenceNumber)
    /// Remove the snapshots of a store, since it was dropped and nobody needs them any more.
    case removeSnapshots(StoreName)
    /// Discard the entries below this number, since nobody needs them any more (rule 20). From here
    /// on the sequencer offers nothing below the floor, even if the removal takes long.
    case truncate(below: SequenceNumber)
    /// Make checkpoints at the log's end: the nearly full log can't discard what follows the older of the last two.
    case makeRoom
    /// Ask the log whether this term is the newest. Answered by
    /// ``SequencerInput/termConfirmed`` or ``SequencerInput/logFailed(_:)``.
    case confirmTerm
    /// Read the file of authorised keys again. Answered by ``SequencerInput/answered(_:by:_:)``.
    case reloadKeys(asked: UInt64, by: ConnectionID)
    /// End the connections of a key, and admit none of it for a while (rule 45).
    case bar(Name, for: Duration)
    /// Report something to whoever observes the sequencer.
    case note(SequencerNote)
    /// End the term. This is the last effect.
    case end(SequencerEnd)
}

/// Commits on their way to the log. The log takes all of them or none.
public struct Append: Sendable, Equatable {
    /// One of them.
    public struct Commit: Sendable, Equatable {
        /// The whole feed frame. The log stores it without its header.
        public var frame: Bytes
        /// The first entry's number.
        public var first: SequenceNumber
        /// The last entry's number.
        public var last: SequenceNumber
    }

    /// The commits, in order and without gaps. There is at least one.
    public var commits: [Commit]
    /// Whether they are synced regardless of the durability setting. A claim is.
    public var isForced: Bool

    /// The first entry's number.
    public var first: SequenceNumber { commits[0].first }
    /// The last entry's number.
    public var last: SequenceNumber { commits[commits.count - 1].last }
}

/// What a sequencer reports to whoever observes it. Notes change nothing.
public enum SequencerNote: Sendable, Equatable {
    /// A checkpoint could not be used, for this reason. The number is zero if it isn't known.
    case checkpointSetAside(SequenceNumber, String)
    /// The state is rebuilt from the checkpoint with the first number, and from the entries after
    /// it up to the last number. If the first number is zero, it was rebuilt from the log's
    /// beginning.
    case recovered(from: SequenceNumber, through: SequenceNumber)
    /// A node joined, or is present again.
    case joined(Incarnation, name: Name?, owner: Name? = nil)
    /// A node is no longer present.
    case left(Incarnation, name: Name?)
    /// A store was created.
    case created(StoreName, life: SequenceNumber)
    /// A life of a store is over.
    case dropped(StoreName, life: SequenceNumber)
    /// A store has a newer schema version.
    case upgraded(StoreName, schemaVersion: UInt32)
    /// A store's schema version does not rise to this one, for this reason. Nothing has changed.
    case upgradeFailed(StoreName, schemaVersion: UInt32, String)
    /// No entry reaches the store any more.
    case frozen(StoreName, FreezeReason)
    /// Entries reach the store again.
    case thawed(StoreName)
    /// An entry has no effect on its target.
    case skipped(SequenceNumber, Target)
    /// A snapshot is confirmed and saved.
    case snapshotTaken(SnapshotPlace, byteCount: UInt64)
    /// A wanted snapshot could not be saved or read, for this reason.
    case snapshotFailed(SnapshotPlace, String)
    /// A replica that was asked for its state failed to send it, for this reason, so another one is asked. The
    /// names are the node's and its key's.
    case sourcePassedOver(SnapshotPlace, Incarnation, name: Name?, owner: Name?, String)
    /// Only the reserve of the log's bound is left. No action is admitted until older entries are
    /// discarded. It is reported again when something else holds the log.
    case logNearlyFull(LogHold)
    /// The wall clock has jumped, or is behind the log's timestamps, or is neither any more.
    case clock(ClockChange)
    /// Older entries were discarded, so actions are admitted again.
    case logHasRoom
    /// Entries can't be read. Nodes that asked for them are told; nodes that do not need them
    /// continue.
    case damaged(Damage)
    /// The list of snapshots is damaged. Each store that can't be opened because of that is
    /// reported by a note of its own.
    case snapshotsUnlisted(String)
    /// The entries of a store that nobody hosts could not be kept aside, so the log keeps them.
    case asideFailed(StoreName, String)
    /// Replicas differ (rule 22).
    case diverged(StoreName, DivergenceStatus)
    /// All replicas that voted have the same state again.
    case converged(StoreName, at: SequenceNumber)
    /// Entries below this number are no longer needed, and are discarded.
    case truncated(below: SequenceNumber)
    /// They could not be discarded. The next attempt is made when the floor rises again.
    case truncateFailed(String)
    /// A frame was not readable.
    case unreadable(String)
    /// A key sent too many useless messages, and is barred for this long.
    case barred(Name, for: Duration)
    /// A node sent a higher epoch than this term's.
    case challenged(by: Epoch)
    /// This many of the live replicas lag, so admission slows (rule 28).
    case slowed(lagging: Int, of: Int)
    /// Admission no longer slows: the replicas have caught up, or slowed it for as long as they
    /// may.
    case resumed
    /// A node's history was not this log's: it had more entries, or other ones.
    case historyLost(Name?, from: SequenceNumber, through: SequenceNumber)
}
