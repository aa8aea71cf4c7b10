import ConfluxVocabulary

/// What is admitted and not in the log yet. Rule 13 is implemented here.
///
/// While one append is on its way to the disk, the next one gathers. An append has as many commits
/// as are needed for each of them to be one message of the feed. The follow-ups of an entry, such
/// as a receipt or a welcome, wait with its commit, and happen only once it is durable.
///
///     admit ──▶ gathering ──▶ in flight ──▶ log answers ──▶ publish, then follow-ups
struct CommitPipeline: Sendable {
    /// What is done once an entry is in the log.
    enum FollowUp: Sendable {
        /// Send the receipts of the batch that begins with this counter. The loads of its entries
        /// count from then on.
        case batch(Incarnation, firstCounter: UInt64, [TargetLoad])
        /// Begin the session, and welcome its node.
        case joined(Nonce)
        /// Welcome the node of a session that had left.
        case rejoined(Incarnation)
        /// Begin the store, and answer its openers.
        case created(StoreName)
        /// The word on the life takes effect: tell those who wait for it.
        case word(StoreName, life: SequenceNumber)
        /// Expect the replicas to vote.
        case digestPoint(StoreName, life: SequenceNumber)
        /// The entry has no effect: tell those who asked for that.
        case skipped(SkippedEntry)
        /// The state handles these events: go on with what the node has asked for.
        case handles(LogEvent, by: Name?, Open, of: Incarnation)
        /// Report that the node is no longer present.
        case left(Incarnation)
        /// Forget the session.
        case forgotten(Incarnation)
    }

    /// A follow-up, and the number of the first entry that it belongs to.
    struct Expectation: Sendable {
        var sequence: SequenceNumber
        var action: FollowUp
    }

    /// Commits on their way to the log.
    struct InFlight: Sendable {
        var append: Append
        var timestamp: Timestamp
        var expectations: [Expectation]
        /// See ``CommitPipeline/changes``.
        var changes: [Target: SequenceNumber]
    }

    /// The commit that gathers. When it is full, the next one is begun.
    private var builder: CommitBuilder
    /// The full commits. They go to the log together with the one that gathers.
    private var full: [CommitBuilder] = []
    /// Their bytes.
    private var fullBytes = 0
    private var expectations: [Expectation] = []
    /// The last entry for each target that gathers. *Use*: conditions.
    private var changes: [Target: SequenceNumber] = [:]
    /// The commits that the log has not answered yet.
    private(set) var inFlight: InFlight?
    /// The last number given to an entry. *Invariant*: no number is given twice in a term.
    private(set) var lastAdmitted: SequenceNumber
    private let settings: SequencerSettings

    /// No request of a node is admitted above this number of follow-ups in one append. A commit may
    /// have 65,536 blocks, and the rest is reserved for the sequencer's own entries, of which a
    /// session causes two at most.
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

    /// Whether a node's request still fits. Above the bound it is not admitted.
    func hasRoom(bytes: Int) -> Bool {
        expectations.count < Self.blocksMax
            && gatheringBytes + bytes <= Int(settings.commitBytesMax)
    }

    /// Gives the batch its numbers. The batch must fit: see `hasRoom`.
    ///
    /// - Returns: The first of them.
    @discardableResult
    mutating func admit(_ batch: Batch, from incarnation: Incarnation) -> SequenceNumber {
        let (first, loads) = (lastAdmitted.next, batch.loads())
        for load in loads {
            changes[load.target] = max(
                changes[load.target] ?? .zero, first.advanced(by: load.last))
        }
        expectations.append(
            Expectation(
                sequence: first,
                action: .batch(incarnation, firstCounter: batch.firstCounter, loads)))
        beginCommit(for: batch.encoded.count)
        builder.append(batch, from: incarnation)
        lastAdmitted = lastAdmitted.advanced(by: UInt64(batch.count))
        return first
    }

    /// The last entry that concerns a store and is not in the log yet; zero if there is none.
    func lastChange(of store: StoreName) -> SequenceNumber {
        var last = SequenceNumber.zero
        for target in [Target.store(store), .state(store.state)] {
            last = max(last, changes[target] ?? inFlight?.changes[target] ?? .zero)
        }
        return last
    }

    /// Gives the event its number.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - owner: The name of the key that caused it; nil if none did.
    ///   - action: What to do once the event is in the log; nil for nothing.
    /// - Returns: Its number.
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

    /// Begins a new commit if the present one would get too large for one message of the feed.
    private mutating func beginCommit(for bytes: Int) {
        guard !builder.isEmpty,
            builder.byteCount + bytes > Int(settings.feedCommitBytesMax)
        else { return }
        full.append(builder)
        fullBytes += builder.byteCount
        builder = builder.following
    }

    func checkInvariants() throws(BrokenInvariant) {
        let bytes = full.reduce(0) { $0 + $1.byteCount }
        try hold(bytes == fullBytes, "\(bytes) bytes are full, and \(fullBytes) are counted")
        let waiting = ((inFlight?.expectations ?? []) + expectations).map(\.sequence)
        try hold(
            zip(waiting, waiting.dropFirst()).allSatisfy { $0 < $1 }, "follow-ups of \(waiting)")
        try hold(
            waiting.last.map { $0 <= lastAdmitted } ?? true, "a follow-up above \(lastAdmitted)")
        try hold(changes.values.allSatisfy { $0 <= lastAdmitted }, "a change above \(lastAdmitted)")
    }

    /// Launches what has gathered, unless an append is under way.
    mutating func launch(timestamp: Timestamp, isForced: Bool) -> Append? {
        guard inFlight == nil, !builder.isEmpty else { return nil }
        // In place: finishing a copy of a builder would copy its commit.
        var commits = full.indices.map { Self.finish(&full[$0], timestamp) }
        commits.append(Self.finish(&builder, timestamp))
        full.removeAll()
        fullBytes = 0
        let append = Append(commits: commits, isForced: isForced)
        inFlight = InFlight(
            append: append, timestamp: timestamp, expectations: expectations, changes: changes)
        expectations.removeAll(keepingCapacity: true)
        changes = [:]
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

    /// The commits that were under way are published.
    mutating func land() -> InFlight {
        guard let landed = inFlight else {
            preconditionFailure("a commit was published that was not under way")
        }
        inFlight = nil
        return landed
    }
}
