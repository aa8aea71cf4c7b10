import ConfluxVocabulary

/// What was admitted and is not yet in the log: the one place of rule 13.
///
/// While one append is on its way to the disk, the next one gathers. An append has as many commits as
/// it takes for each to be one message of the feed. What follows from an entry
/// (a receipt, a welcome) waits with its commit and is said only after it is durable.
///
///     admit ──▶ gathering ──▶ in flight ──▶ log answers ──▶ publish, then follow-ups
struct CommitPipeline: Sendable {
    /// What is said and done once an entry is in the log.
    enum FollowUp: Sendable {
        /// Give the receipts of the batch that begins with this counter.
        /// What its entries come to counts from then on.
        case batch(Incarnation, firstCounter: UInt64, count: UInt32, [TargetLoad])
        /// Begin the session and welcome its node.
        case joined(Nonce)
        /// Welcome the node of a session that had left.
        case rejoined(Incarnation)
        /// Begin the store and answer its openers.
        case created(StoreName)
        /// A word on the life counts: tell who waits for it.
        case word(StoreName, life: SequenceNumber)
        /// Replicas will say what their states are.
        case digestPoint(StoreName, life: SequenceNumber)
        /// An entry has no effect: tell who asked for it.
        case skipped(SkippedEntry)
        /// The node is no longer present.
        case left(Incarnation)
        /// The session is remembered no longer.
        case forgotten(Incarnation)
        /// A visit began.
        case visited
    }

    /// A follow-up and the number of the first entry that it follows.
    struct Expectation: Sendable {
        var sequence: SequenceNumber
        var action: FollowUp
    }

    /// Commits on their way to the log.
    struct InFlight: Sendable {
        var append: Append
        var timestamp: Timestamp
        var expectations: [Expectation]
    }

    /// What gathers. It continues with the next commit when one is full.
    private var builder: CommitBuilder
    /// The commits that are full, and go to the log together with what gathers.
    private var full: [CommitBuilder] = []
    /// Their bytes.
    private var fullBytes = 0
    private var expectations: [Expectation] = []
    /// The commits that the log has not answered yet.
    private(set) var inFlight: InFlight?
    /// The last number given to an entry. *Invariant*: no number is given twice in a tenure.
    private(set) var lastAdmitted: SequenceNumber
    private let settings: SequencerSettings

    /// The most blocks that nodes cause in one commit. The format allows 65,536; the rest is kept
    /// for the sequencer's own entries, of which a session causes two at most.
    private static let blocksMax = 40_000

    init(
        log: LogID, epoch: Epoch, predecessor: Epoch, last: SequenceNumber,
        settings: SequencerSettings
    ) {
        builder = CommitBuilder(log: log, epoch: epoch, predecessor: predecessor, first: last.next)
        lastAdmitted = last
        self.settings = settings
    }

    /// Whether everything that was admitted is in the log.
    var isEmpty: Bool { builder.isEmpty && full.isEmpty && inFlight == nil }

    /// The bytes that gather for the next append.
    var gatheringBytes: Int { fullBytes + builder.byteCount }

    /// Whether what a node brings still fits; above the bound it is turned away at the door.
    func hasRoom(bytes: Int) -> Bool {
        expectations.count < Self.blocksMax
            && gatheringBytes + bytes <= Int(settings.commitBytesMax)
    }

    /// Gives the batch its numbers. It must fit: see `hasRoom`.
    mutating func admit(_ batch: Batch, from incarnation: Incarnation) {
        expectations.append(
            Expectation(
                sequence: lastAdmitted.next,
                action: .batch(
                    incarnation, firstCounter: batch.firstCounter, count: batch.count,
                    batch.loads())))
        beginCommit(for: batch.encoded.count)
        builder.append(batch, from: incarnation)
        lastAdmitted = lastAdmitted.advanced(by: UInt64(batch.count))
    }

    /// Gives the event its number.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - owner: The name of the key that caused it, if one did.
    ///   - action: What is to be done once it is in the log.
    /// - Returns: The number.
    @discardableResult
    mutating func admit(
        _ event: LogEvent, by owner: Name? = nil, then action: FollowUp?
    ) -> SequenceNumber {
        lastAdmitted = lastAdmitted.next
        beginCommit(for: event.byteCountMax)
        builder.append(event, by: owner)
        if let action {
            expectations.append(Expectation(sequence: lastAdmitted, action: action))
        }
        return lastAdmitted
    }

    /// A commit is one message of the feed, so that it gets no further block where it would become too
    /// large for that.
    private mutating func beginCommit(for bytes: Int) {
        guard !builder.isEmpty,
            builder.byteCount + bytes > Int(settings.feedCommitBytesMax)
        else { return }
        full.append(builder)
        fullBytes += builder.byteCount
        builder = builder.following
    }

    /// Sends what has gathered on its way, unless a commit is on its way already.
    mutating func launch(timestamp: Timestamp, isForced: Bool) -> Append? {
        guard inFlight == nil, !builder.isEmpty else { return nil }
        var commits = full.map { full in
            var full = full
            return Self.finish(&full, timestamp)
        }
        commits.append(Self.finish(&builder, timestamp))
        full.removeAll()
        fullBytes = 0
        let append = Append(commits: commits, isForced: isForced)
        inFlight = InFlight(append: append, timestamp: timestamp, expectations: expectations)
        expectations.removeAll(keepingCapacity: true)
        return append
    }

    private static func finish(
        _ builder: inout CommitBuilder, _ timestamp: Timestamp
    ) -> Append.Commit {
        let first = builder.first
        let frame = builder.finish(timestamp: timestamp)
        return Append.Commit(
            frame: frame, first: first, last: SequenceNumber(builder.first.rawValue - 1))
    }

    /// The log has the commits that were in flight.
    mutating func land() -> InFlight {
        guard let landed = inFlight else {
            preconditionFailure("the log answered an append that was not under way")
        }
        inFlight = nil
        return landed
    }
}
