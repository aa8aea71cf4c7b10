import ConfluxVocabulary

/// What was admitted and is not yet in the log: the one place of rule 13.
///
/// While one commit is on its way to the disk, the next one gathers. What follows from an entry
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
        case dropped(StoreName)
        /// The store has a newer schema version: answer its openers.
        case upgraded(StoreName)
        /// Replicas will say what their states are.
        case digestPoint(StoreName, life: SequenceNumber)
        /// Tell who asked for it.
        case decided(SequencerMachine.Decision)
        /// The node is no longer present.
        case left(Incarnation)
        /// The session is remembered no longer.
        case forgotten(Incarnation)
    }

    /// A follow-up and the number of the first entry that it follows.
    struct Expectation: Sendable {
        var sequence: SequenceNumber
        var action: FollowUp
    }

    /// A commit on its way to the log.
    struct InFlight: Sendable {
        var append: Append
        var timestamp: Timestamp
        var expectations: [Expectation]
    }

    /// What gathers. It goes on with the next commit when one was finished.
    private var builder: CommitBuilder
    private var expectations: [Expectation] = []
    /// The commit that the log has not answered yet.
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
    var isEmpty: Bool { builder.isEmpty && inFlight == nil }

    /// The bytes that gather for the next commit.
    var gatheringBytes: Int { builder.byteCount }

    /// Whether what a node brings still fits; above the bound it is turned away at the door.
    func hasRoom(bytes: Int) -> Bool {
        expectations.count < Self.blocksMax
            && builder.byteCount + bytes <= Int(settings.commitBytesMax)
    }

    /// Gives the batch its numbers. It must fit: see `hasRoom`.
    mutating func admit(_ batch: Batch, from incarnation: Incarnation) {
        expectations.append(
            Expectation(
                sequence: lastAdmitted.next,
                action: .batch(
                    incarnation, firstCounter: batch.firstCounter, count: batch.count,
                    batch.loads())))
        builder.append(batch, from: incarnation)
        lastAdmitted = lastAdmitted.advanced(by: UInt64(batch.count))
    }

    /// Gives the event its number.
    @discardableResult
    mutating func admit(_ event: LogEvent, then action: FollowUp?) -> SequenceNumber {
        lastAdmitted = lastAdmitted.next
        builder.append(event)
        if let action {
            expectations.append(Expectation(sequence: lastAdmitted, action: action))
        }
        return lastAdmitted
    }

    /// Sends what has gathered on its way, unless a commit is on its way already.
    mutating func launch(timestamp: Timestamp, isForced: Bool) -> Append? {
        guard inFlight == nil, !builder.isEmpty else { return nil }
        let first = builder.first
        let frame = builder.finish(timestamp: timestamp)
        let append = Append(frame: frame, first: first, last: lastAdmitted, isForced: isForced)
        inFlight = InFlight(append: append, timestamp: timestamp, expectations: expectations)
        expectations.removeAll(keepingCapacity: true)
        return append
    }

    /// The log has the commit that was in flight.
    mutating func land() -> InFlight {
        guard let landed = inFlight else {
            preconditionFailure("the log answered an append that was not under way")
        }
        inFlight = nil
        return landed
    }
}
