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
        case batch(Incarnation, firstCounter: UInt64)
        /// Begin the session and welcome its node.
        case joined(Nonce)
        /// Welcome the node of a session that had left.
        case rejoined(Incarnation)
        /// Begin the store and answer its openers.
        case created(StoreName)
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

    private var builder: CommitBuilder?
    private var expectations: [Expectation] = []
    /// The commit that the log has not answered yet.
    private(set) var inFlight: InFlight?
    /// The last number given to an entry. *Invariant*: no number is given twice in a tenure.
    private(set) var lastAdmitted: SequenceNumber

    private let log: LogID
    private let epoch: Epoch

    init(log: LogID, epoch: Epoch, last: SequenceNumber) {
        self.log = log
        self.epoch = epoch
        self.lastAdmitted = last
    }

    /// Whether everything that was admitted is in the log.
    var isEmpty: Bool { builder == nil && inFlight == nil }

    /// The bytes that have gathered.
    var gatheredBytes: Int { builder?.byteCount ?? 0 }

    mutating func admit(
        _ batch: Batch, from incarnation: Incarnation, predecessor: Epoch
    ) {
        let first = lastAdmitted.next
        begin(predecessor)
        builder?.append(batch, from: incarnation)
        expectations.append(
            Expectation(
                sequence: first,
                action: .batch(incarnation, firstCounter: batch.firstCounter)))
        lastAdmitted = lastAdmitted.advanced(by: UInt64(batch.count))
    }

    @discardableResult
    mutating func admit(
        _ event: LogEvent, predecessor: Epoch, then action: FollowUp?
    ) -> SequenceNumber {
        let sequence = lastAdmitted.next
        begin(predecessor)
        builder?.append(event)
        if let action {
            expectations.append(Expectation(sequence: sequence, action: action))
        }
        lastAdmitted = sequence
        return sequence
    }

    private mutating func begin(_ predecessor: Epoch) {
        guard builder == nil else { return }
        // What stands in flight is of this tenure, and so is the predecessor then.
        builder = CommitBuilder(
            log: log, epoch: epoch, predecessor: inFlight == nil ? predecessor : epoch,
            first: lastAdmitted.next)
    }

    /// Sends what has gathered on its way, unless a commit is on its way already.
    mutating func launch(timestamp: Timestamp, isForced: Bool) -> Append? {
        guard inFlight == nil, var builder else { return nil }
        let first = builder.first
        let frame = builder.finish(timestamp: timestamp)
        let append = Append(frame: frame, first: first, last: lastAdmitted, isForced: isForced)
        inFlight = InFlight(append: append, timestamp: timestamp, expectations: expectations)
        self.builder = nil
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
