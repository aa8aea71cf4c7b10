/// The actions of this node that have no outcome yet: the node's side of rules 9, 12 and 27.
///
/// Batches stay here, with their boundaries, until every one of their actions has an outcome. After
/// a reconnect they are submitted again, unchanged. If the sequencer has judged one before, it
/// answers with the first outcome.
///
///       settled         ◀── unsettled batches ──▶
///     1 …    │ batch │ batch │ void │ batch │
///                            ▲ nextToSend
///
/// **Withdrawing** (rule 12) makes a batch void, or cuts it around the withdrawn actions: before,
/// void, after. The counters stay where they are, and a void counter never becomes an action again.
/// Batches are only ever cut, never joined. So nothing is applied twice, and nothing counts as
/// judged that was not:
///
/// - A batch that the sequencer judged, in whatever parts this node had then, is judged again in
///   parts of these. As long as the term lasts, the ledger knows the first outcome of each
///   counter: the void part gets the receipt if the action is in the log already.
/// - After a restart, the ledger knows what the log has, and what this node says is settled, which
///   it says before anything else. A part that reaches beyond the last counter that is known
///   belongs to a batch that was judged whole, since batches are logged whole. What of it is not in
///   the log was rejected, and is `unrecorded` now. A part that begins behind that counter is
///   judged anew. It was rejected before, or never judged: either way it is not in the log. Its
///   outcome is not known here, since whatever is known is settled, or sent as void first. So it
///   enters the log at most once, and has only one outcome that anybody learns.
/// - A void part that was judged is not in the log. After a restart it is void again.
struct Submissions: Sendable {
    /// The batches without outcomes, ascending. *Use*: resubmission.
    private var batches: [Batch] = []
    /// The batches before this index are settled.
    private var head = 0
    /// The index of the first batch that is not on its way. *Invariant*: head ≤ nextToSend ≤ count.
    private var nextToSend = 0
    /// The counter that the next action gets.
    private(set) var nextCounter: UInt64
    /// The counter up to which every outcome is known.
    private(set) var settled: UInt64
    /// The counter up to which outcomes were told to whoever reads them; nil if it is enough to
    /// know them. *Use*: a process with a session key reports nothing beyond it as settled
    /// (rule 11).
    private var toldThrough: UInt64?
    /// The bytes of unsettled batches. *Use*: the window.
    private(set) var unsettledBytes = 0
    /// Counters whose outcome is known here but, since a restart, not to the sequencer. *Use*: they
    /// are sent as void before everything else, so that none of them is judged again.
    private var known: Range<UInt64> = 0..<0
    /// After a batch was discarded, nothing is sent before this moment.
    private(set) var pausedUntil: Duration?
    /// The counter for which the sequencer had no room. Until an outcome comes, only its batch is sent: a probe.
    private var probe: UInt64?
    /// How long the last pause was, if no outcome has come since.
    private var lastPause: Duration?

    init() {
        nextCounter = 1
        settled = 0
    }

    /// The submissions of a process that continues another's (rule 11). That process told what is
    /// settled. Nothing else counts as settled before ``tell(through:)``.
    init(resumingAfter settled: UInt64) {
        nextCounter = settled + 1
        self.settled = settled
        toldThrough = settled
    }

    /// The counter up to which the sequencer may forget outcomes.
    var reported: UInt64 { min(settled, toldThrough ?? settled) }
    /// Whether an outcome is due.
    var isAwaiting: Bool { head < batches.count }
    /// Whether outcomes of more than one batch are due.
    var isCrowded: Bool { head + 1 < batches.count }
    /// Whether a batch is to be sent.
    var isSendDue: Bool { nextToSend < batches.count || !known.isEmpty }
    /// How many actions have no outcome.
    var unsettledCount: UInt64 { nextCounter - 1 - settled }

    func checkInvariants() throws(BrokenInvariant) {
        try hold(
            head <= nextToSend && nextToSend <= batches.count, "\(nextToSend) of \(batches.count)")
        let open = batches[head...]
        let bytes = open.reduce(0) { $0 + $1.encoded.count }
        try hold(bytes == unsettledBytes, "\(bytes) bytes, and \(unsettledBytes) are counted")
        try hold(settled < nextCounter, "\(settled) is settled, and \(nextCounter) is next")
        for (former, batch) in zip(open, open.dropFirst()) {
            try hold(
                batch.firstCounter == former.lastCounter + 1, "a gap behind \(former.lastCounter)")
        }
        guard let first = open.first, let last = open.last else {
            return try hold(settled + 1 == nextCounter, "actions after \(settled) are gone")
        }
        try hold(
            first.firstCounter <= settled + 1 && settled < first.lastCounter,
            "\(settled) is settled, and \(first.firstCounter)…\(first.lastCounter) is open")
        try hold(
            last.lastCounter + 1 == nextCounter, "\(nextCounter) is next after \(last.lastCounter)")
    }

    /// Makes the next batch to add, of a builder's actions.
    func batch(of builder: inout BatchBuilder, isAtomic: Bool) -> Batch {
        builder.finish(firstCounter: nextCounter, settled: reported, isAtomic: isAtomic)
    }

    /// Adds the batch that was made last. The actions at the withdrawn places become void.
    mutating func add(_ batch: Batch, withdrawn: Set<Int> = []) {
        precondition(
            batch.firstCounter == nextCounter, "a batch of another machine, or an old one")
        append(batch)
        guard !withdrawn.isEmpty else { return }
        let counters = withdrawn.sorted().map {
            batch.firstCounter + UInt64($0)..<batch.firstCounter + UInt64($0) + 1
        }
        // The batch is not sent yet, so nothing is urgent.
        _ = withdraw(RangeSet(counters))
    }

    /// Adds counters without actions.
    mutating func addVoid(_ count: UInt32) {
        append(.void(firstCounter: nextCounter, count: count, settled: reported))
    }

    private mutating func append(_ batch: Batch) {
        nextCounter = batch.lastCounter + 1
        unsettledBytes += batch.encoded.count
        batches.append(batch)
    }

    /// Makes these counters void, unless their outcome is known.
    ///
    /// - Returns: The void batches for actions that were sent before: send them at once. Batches
    ///   that are due anyway are not among them.
    mutating func withdraw(_ counters: RangeSet<UInt64>) -> [Batch] {
        let wanted = counters.intersection(RangeSet(settled + 1..<nextCounter))
        guard let first = wanted.ranges.first?.lowerBound,
            let last = wanted.ranges.last?.upperBound
        else { return [] }
        var urgent: [Batch] = []
        var kept = Array(batches[..<head])
        var sent = head
        for (index, batch) in batches.enumerated().dropFirst(head) {
            let isConcerned = batch.lastCounter >= first && batch.firstCounter < last
            let parts =
                isConcerned ? batch.parts(withdrawing: wanted, settled: reported) : [batch]
            if index < nextToSend {
                sent += parts.count
                if isConcerned, !batch.isVoid { urgent += parts.filter(\.isVoid) }
            }
            unsettledBytes += parts.reduce(0) { $0 + $1.encoded.count } - batch.encoded.count
            kept += parts
        }
        batches = kept
        nextToSend = sent
        // Part of the first batch may have been settled, and is a batch of its own now.
        dropSettled()
        return urgent
    }

    /// Outcomes up to this counter were told. An outcome that is not known yet counts once it is
    /// known.
    mutating func tell(through counter: UInt64) {
        guard let known = toldThrough, counter > known else { return }
        toldThrough = counter
    }

    /// The next batch to send, if it is time.
    mutating func next(at now: Duration) -> Batch? {
        if let until = pausedUntil {
            guard now >= until else { return nil }
            pausedUntil = nil
        }
        if !known.isEmpty {
            let count = min(known.upperBound - known.lowerBound, Self.voidCountMax)
            defer { known = known.lowerBound + count..<known.upperBound }
            return .void(
                firstCounter: known.lowerBound, count: UInt32(count), settled: reported)
        }
        guard nextToSend < batches.count, !isProbed else { return nil }
        defer { nextToSend += 1 }
        return batches[nextToSend]
    }

    /// Whether the probe is on its way, so that nothing behind it is sent.
    private var isProbed: Bool {
        probe.map { batches[nextToSend].firstCounter > $0 } ?? false
    }

    /// The most counters of a void batch.
    private static let voidCountMax = UInt64(WireLimits.standard.entriesPerBatchMax)

    /// Everything without an outcome is to be sent again, except for what was judged.
    ///
    /// What is known and not yet told is not settled for the sequencer. If a restart has made it
    /// forget rejections among that, they must not be judged again: whoever reads the outcomes may
    /// have read of them, or will. What the sequencer doesn't know is in no log, so it is sent as
    /// void.
    ///
    /// - Parameters:
    ///   - judged: The counter up to which this term has judged everything.
    ///   - last: The last counter that the sequencer knows of, once it is told what is settled.
    mutating func rewind(past judged: UInt64, knownThrough last: UInt64) {
        nextToSend =
            batches[head...].firstIndex { $0.lastCounter > judged } ?? batches.count
        (pausedUntil, probe) = (nil, nil)
        known = last < settled && reported < settled ? max(last, reported) + 1..<settled + 1 : 0..<0
        guard !known.isEmpty, isAwaiting else { return }
        let batch = batches[head]
        guard batch.firstCounter <= settled, !batch.isAtomic else { return }
        // Part of this batch is known: the rest is sent as a batch of its own.
        let isVoid = batch.isVoid
        let rest =
            isVoid
            ? .void(
                firstCounter: settled + 1, count: UInt32(batch.lastCounter - settled),
                settled: reported)
            : batch.parts(
                withdrawing: RangeSet(batch.firstCounter..<settled + 1), settled: 0
            ).last
        guard let rest else { return }
        unsettledBytes += rest.encoded.count - batch.encoded.count
        batches[head] = rest
    }

    /// A batch was discarded: everything from this counter on is to be sent again, after a pause. During the pause
    /// the answers to the batches behind it arrive, and are ignored. Pauses grow while no outcome comes, so that a
    /// batch for which the sequencer has no room is not sent over and over.
    ///
    /// - Parameters:
    ///   - counter: The counter that the sequencer expects.
    ///   - isFull: Whether it had no room. Then one batch is sent after the pause, and the others once an outcome
    ///     comes.
    ///   - now: When it said so.
    ///   - first: The first pause.
    ///   - most: The longest pause, if it is longer than the first.
    mutating func rewind(
        to counter: UInt64, isFull: Bool, at now: Duration, first: Duration, most: Duration
    ) {
        guard pausedUntil == nil else { return }
        let pause = lastPause.map { max(first, min($0 * 2, most)) } ?? first
        lastPause = pause
        probe = isFull ? counter : nil
        if counter < known.upperBound { known = counter..<known.upperBound }
        // The counter may lie within a batch: of that batch, a restarted sequencer may know only
        // that a part is settled.
        nextToSend =
            batches[head...].firstIndex { $0.lastCounter >= counter } ?? batches.count
        pausedUntil = now + pause
    }

    /// The outcomes of these counters are known.
    ///
    /// - Returns: false if they are not the next ones: they were known before, or are ahead of
    ///   others.
    mutating func settle(from first: UInt64, count: UInt32) -> Bool {
        guard first == settled + 1, first + UInt64(count) <= nextCounter else { return false }
        settled += UInt64(count)
        (lastPause, probe) = (nil, nil)
        dropSettled()
        return true
    }

    private mutating func dropSettled() {
        while head < batches.count, batches[head].lastCounter <= settled {
            unsettledBytes -= batches[head].encoded.count
            head += 1
        }
        nextToSend = max(nextToSend, head)
        if head > 32, head * 2 > batches.count {
            batches.removeFirst(head)
            nextToSend -= head
            head = 0
        }
    }

    /// The session is gone. What has no outcome will never have a known one, and counters begin
    /// anew.
    ///
    /// - Returns: The first counter without an outcome, and how many there are; nil if there are
    ///   none.
    mutating func forget() -> (first: UInt64, count: UInt64)? {
        let open = unsettledCount > 0 ? (first: settled + 1, count: unsettledCount) : nil
        self = Submissions()
        return open
    }
}
