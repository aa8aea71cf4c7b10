import ConfluxVocabulary

/// What the sequencer wants done. Effects are carried out one after another, in their order.
public enum SequencerEffect: Sendable, Equatable {
    /// Find the newest checkpoint at or below a number; answered by
    /// ``SequencerInput/checkpointRead(_:)``.
    case readCheckpoint(through: SequenceNumber)
    /// Read the log for the rebuilding of the state; answered by ``SequencerInput/logRead(_:)``.
    case readLog(from: SequenceNumber)
    /// Read which snapshots there are; answered by ``SequencerInput/snapshotsRead(_:damage:)``.
    case readSnapshots
    /// Append to the log; answered by ``SequencerInput/appended``. At most one is under way, and
    /// nothing of its commits is said to anybody before it is answered (rule 13).
    case append(Append)
    /// The tenure has begun: hear the sockets. The beat is what the feed welcomes subscribers with.
    case serve(Beat)
    /// Publish a commit that is in the log.
    case publishCommit(frame: Bytes)
    /// Publish a beat.
    case publishBeat(Beat)
    /// Send a message. A connection that can't take it loses it: the node asks again.
    case send(SequencerMessage, to: ConnectionID)
    /// Read the log for a node; answered by ``SequencerInput/read(_:_:)``.
    case read(ReadJob)
    /// Save the next part of a snapshot; answered by ``SequencerInput/snapshotSaved(_:)``. At most
    /// one of each life is under way.
    case saveSnapshot(SnapshotPart)
    /// Keep the entries up to a number that concern these stores beside the log; answered by
    /// ``SequencerInput/keptAside(_:)``. At most one is under way.
    case keepAside([AsideJob], through: SequenceNumber)
    /// Nobody needs the snapshots of a store any more: it was dropped.
    case removeSnapshots(StoreName)
    /// Nobody needs the entries below this number any more (rule 20). What is below the floor is
    /// promised to nobody from here on, however long it takes.
    case truncate(below: SequenceNumber)
    /// Ask the log whether this tenure is the newest; answered by
    /// ``SequencerInput/tenureConfirmed`` or ``SequencerInput/logFailed(_:)``.
    case confirmTenure
    /// Read the file of authorised keys again; answered by ``SequencerInput/answered(_:by:_:)``.
    case reloadKeys(asked: UInt64, by: ConnectionID)
    /// End the connections of a key, and admit it no more for a while (rule 45).
    case bar(Name, for: Duration)
    /// Tell whoever watches.
    case note(SequencerNote)
    /// The tenure is over. The last effect.
    case end(SequencerEnd)
}

/// Commits on their way to the log, which takes all of them or none.
public struct Append: Sendable, Equatable {
    /// One of them.
    public struct Commit: Sendable, Equatable {
        /// The whole feed frame; the log keeps it without its header.
        public var frame: Bytes
        /// The first entry's number.
        public var first: SequenceNumber
        /// The last entry's number.
        public var last: SequenceNumber
    }

    /// The commits, each of which follows the one before; there is one at least.
    public var commits: [Commit]
    /// Whether they are synced whatever the durability: a claim is.
    public var isForced: Bool

    /// The first entry's number.
    public var first: SequenceNumber { commits[0].first }
    /// The last entry's number.
    public var last: SequenceNumber { commits[commits.count - 1].last }
}

/// What a sequencer tells whoever watches it. Notes change nothing.
public enum SequencerNote: Sendable, Equatable {
    /// A checkpoint could not be used, for this reason; zero where its number isn't known.
    case checkpointSetAside(SequenceNumber, String)
    /// The state is rebuilt: from the checkpoint with the first number, or with zero from the
    /// beginning, and the entries behind it up to the last one.
    case recovered(from: SequenceNumber, through: SequenceNumber)
    /// A node joined, or is present again.
    case joined(Incarnation, name: Name?, owner: Name? = nil)
    /// A node is no longer present.
    case left(Incarnation, name: Name?)
    /// A store began.
    case created(StoreName, life: SequenceNumber)
    /// A life of a store is over.
    case dropped(StoreName, life: SequenceNumber)
    /// A store has a newer schema version.
    case upgraded(StoreName, schemaVersion: UInt32)
    /// No entry reaches the store any more, or entries do again.
    case frozen(StoreName, FreezeReason)
    case thawed(StoreName)
    /// An entry has no effect on what it concerns.
    case skipped(SequenceNumber, Target)
    /// A snapshot is confirmed, and there.
    case snapshotTaken(SnapshotPlace, byteCount: UInt64)
    /// A snapshot that was wanted is not there, for this reason.
    case snapshotFailed(SnapshotPlace, String)
    /// The log has used all but the reserve of its bound: nothing is admitted before older entries are
    /// given up, of which so much is retained.
    case logNearlyFull(retained: String)
    /// Older entries were given up: it is admitted as before.
    case logHasRoom
    /// Entries can't be read. Who asked for them is told; who does not need them continues.
    case damaged(Damage)
    /// The list of snapshots is damaged. A store that it holds off is told by itself.
    case snapshotsUnlisted(String)
    /// The entries of a store that nobody hosts could not be kept aside: they keep the log.
    case asideFailed(StoreName, String)
    /// Replicas differ (rule 22).
    case diverged(StoreName, DivergenceStatus)
    /// All replicas that voted have one state again.
    case converged(StoreName, at: SequenceNumber)
    /// What stands below is not needed any more, and given up.
    case truncated(below: SequenceNumber)
    /// It could not be given up. It is tried again.
    case truncateFailed(String)
    /// A frame was not readable.
    case unreadable(String)
    /// A key sent too much in vain, and is barred for this long.
    case barred(Name, for: Duration)
    /// A node spoke with a higher epoch than this tenure's.
    case challenged(by: Epoch)
    /// So many of the live replicas lag that admission is slow (rule 28).
    case slowed(lagging: Int, of: Int)
    /// Admission is not slow any more: replicas have caught up, or had the time to.
    case resumed
    /// A node's history was not this log's: it had seen more, or other entries.
    case historyLost(Name?, from: SequenceNumber, through: SequenceNumber)
}
