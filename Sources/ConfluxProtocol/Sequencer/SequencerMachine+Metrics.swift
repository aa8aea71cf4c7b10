import ConfluxVocabulary

/// Counts of what a sequencer has committed and rejected since its process started.
public struct SequencerTally: Sendable, Hashable {
    /// Entries committed.
    public internal(set) var entries: UInt64 = 0
    /// Commits written to the log.
    public internal(set) var commits: UInt64 = 0
    /// Bytes of these commits.
    public internal(set) var commitBytes: UInt64 = 0
    /// Actions rejected, by reason.
    public internal(set) var rejections: [RejectionCode: UInt64] = [:]
    /// Batches discarded for now, by reason. Their nodes resubmit them.
    public internal(set) var postponements: [Expected.Reason: UInt64] = [:]

    /// Makes an empty tally.
    public init() {}

    mutating func land(_ commit: Append.Commit) {
        commits += 1
        entries += commit.last.rawValue - commit.first.rawValue + 1
        commitBytes += UInt64(commit.frame.count - Frame.size)
    }

    mutating func reject(_ count: UInt32, _ code: RejectionCode) {
        rejections[code, default: 0] += UInt64(count)
    }

    mutating func postpone(_ reason: Expected.Reason) {
        postponements[reason, default: 0] += 1
    }
}

/// Levels of a sequencer's machine at one moment.
package struct SequencerGauges: Sendable {
    /// A connected node that hosts stores.
    package struct Replica: Sendable {
        /// The node's name.
        package var name: Name?
        /// The number up to which its replicas have applied.
        package var applied: SequenceNumber
    }

    package var epoch: Epoch
    package var last: SequenceNumber
    package var floor: SequenceNumber
    package var liveCount: Int
    package var awayCount: Int
    package var observerCount: Int
    package var storeCount: Int
    package var timerCount: Int
    package var stoppedReplicaCount: Int
    package var isSlow: Bool
    package var isLogNearlyFull: Bool
    /// Whether the wall clock is behind the log's timestamps.
    package var isClockBehind: Bool
    package var retainedBytes: UInt64
    package var replicas: [Replica]
    package var bounds: [Bound]
}

extension SequencerMachine {
    /// The present levels.
    ///
    /// - Complexity: O(*n*) in the number of sessions.
    package var gauges: SequencerGauges {
        var live = 0
        var fullest = SessionLevels()
        for session in sessions.all {
            if session.presence == .live { live += 1 }
            fullest.add(session.ledger)
        }
        var stopped = 0
        var replicas: [SequencerGauges.Replica] = []
        for incarnation in directory.hosting.incarnations {
            stopped += directory.hosting[incarnation]?.stopped.count ?? 0
        }
        for incarnation in directory.hosting.hosts {
            guard let session = sessions[incarnation], session.connection != nil else { continue }
            replicas.append(SequencerGauges.Replica(name: session.name, applied: session.applied))
        }
        return SequencerGauges(
            epoch: term.epoch, last: term.last, floor: term.floor, liveCount: live,
            awayCount: sessions.count - live,
            observerCount: connections.observers.total,
            storeCount: directory.storeCount, timerCount: timers.counts.total,
            stoppedReplicaCount: stopped,
            isSlow: admission.isSlow, isLogNearlyFull: isLogNearlyFull,
            isClockBehind: term.clock.isBehind,
            retainedBytes: term.marks.byteCount(
                behind: SequenceNumber(max(term.floor.rawValue, 1) - 1)),
            replicas: replicas, bounds: ownBounds + bounds(of: fullest))
    }
}
