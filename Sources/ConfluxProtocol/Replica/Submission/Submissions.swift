import ConfluxVocabulary

/// The actions of this node that have no outcome yet: the node's side of rules 9, 12 and 27.
///
/// Batches stay here, with their boundaries, until every one of their actions has an outcome.
/// After a reconnect they are submitted again, as they are; the sequencer answers what it has
/// judged before with the first outcome.
///
///       settled         ◀── unsettled batches ──▶
///     1 …    │ batch │ batch │ void │ batch │
///                            ▲ nextToSend
///
/// **Withdrawing** (rule 12) makes a batch void, or cuts it around what is withdrawn: before, void,
/// after. The counters stay where they are, and a void one is never an action again. Batches are
/// only ever cut, never joined, and that is why nothing is applied twice, nor taken for judged that
/// was not:
///
/// - A batch that the sequencer judged, in whatever parts this node had then, is judged again in
///   parts of these. As long as the tenure lasts, the ledger knows each counter's first outcome:
///   the void part gets the receipt if the action is in the log already.
/// - After a restart the ledger knows what the log has, and what this node says is settled, which
///   it says before anything else. A part that reaches beyond the last counter that is known
///   belongs to a batch that was judged whole, since batches are logged whole: what is not in the
///   log of it was rejected, and is `unrecorded` now. A part that begins behind that counter is
///   judged anew. It was rejected before, or never judged; either way it is not in the log, and its
///   outcome is not known here, for what is known is settled, or sent as void first. So it enters
///   the log once at most, and has one outcome that anybody hears of.
/// - A void part that was judged is not in the log. After a restart it is void again.
struct Submissions: Sendable {
    /// The batches without outcomes, ascending. *Use*: resubmission.
    private var batches: [Batch] = []
    /// The batches before this index are settled.
    private var head = 0
    /// The index of the first batch that is not on its way. *Invariant*: head ≤ it ≤ count.
    private var nextToSend = 0
    /// The counter that the next action gets.
    private(set) var nextCounter: UInt64
    /// The counter up to which every outcome is known.
    private(set) var settled: UInt64
    /// The counter up to which outcomes were told to whoever reads them; nil if knowing them is
    /// enough. *Use*: a process with a key says of no more that it is settled (rule 11).
    private var toldThrough: UInt64?
    /// The bytes of unsettled batches. *Use*: the window.
    private(set) var unsettledBytes = 0
    /// Counters whose outcome is known here and, since a restart, not at the sequencer. *Use*: they
    /// are sent as void before everything else, so that nothing of them is judged again.
    private var known: Range<UInt64> = 0..<0
    /// Nothing is sent before this moment, when a batch was discarded.
    private(set) var pausedUntil: Duration?
    /// The counter that the sequencer had no room for. Only its batch is sent until an outcome comes: a probe.
    private var probe: UInt64?
    /// How long the last pause was, when no outcome has come since.
    private var lastPause: Duration?

    init() {
        nextCounter = 1
        settled = 0
    }

    /// The submissions of a process that continues another's (rule 11): what is settled was told by
    /// that one, and nothing else counts as settled before ``tell(through:)``.
    init(resumingAfter settled: UInt64) {
        nextCounter = settled + 1
        self.settled = settled
        toldThrough = settled
    }

    /// The counter up to which the sequencer may forget outcomes.
    var reported: UInt64 { min(settled, toldThrough ?? settled) }
    /// Whether an outcome is due.
    var isAwaiting: Bool { head < batches.count }
    /// Whether several outcomes are due, of batches apart.
    var isCrowded: Bool { head + 1 < batches.count }
    /// Whether a batch is to be sent.
    var isSendDue: Bool { nextToSend < batches.count || !known.isEmpty }
    /// How many actions have no outcome.
    var unsettledCount: UInt64 { nextCounter - 1 - settled }

    /// Adds the actions of a builder; those at the places that are withdrawn as void.
    mutating func add(
        _ builder: consuming BatchBuilder, isAtomic: Bool, withdrawn: RangeSet<Int> = RangeSet()
    ) {
        let batch = builder.finish(
            firstCounter: nextCounter, settled: reported, isAtomic: isAtomic)
        append(batch)
        guard !withdrawn.isEmpty else { return }
        let counters = withdrawn.ranges.map {
            batch.firstCounter + UInt64($0.lowerBound)..<batch.firstCounter + UInt64($0.upperBound)
        }
        // The batch is not sent yet, so nothing is urgent.
        _ = withdraw(RangeSet(counters))
    }

    /// Adds counters that are for nothing.
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
    /// - Returns: The void batches of what was sent as actions before: to be sent at once. Batches
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
        return urgent
    }

    /// Outcomes up to this counter were told; of those that are not known yet, once they are.
    mutating func tell(through counter: UInt64) {
        guard let known = toldThrough, counter > known else { return }
        toldThrough = counter
    }

    /// The next batch to send, if the time has come.
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

    /// Whether the probe is on its way.
    private var isProbed: Bool {
        probe.map { batches[nextToSend].firstCounter > $0 } ?? false
    }

    /// The most counters of a void batch.
    private static let voidCountMax = UInt64(WireLimits.standard.entriesPerBatchMax)

    /// Everything without an outcome is to be sent again, but for what was judged.
    ///
    /// What is known and not told yet is not settled for the sequencer. If a restart has made it
    /// forget the rejections among that, they must not be judged again: whoever reads the outcomes
    /// may have read of them, or will. What it doesn't know is in no log, so it is sent as void.
    ///
    /// - Parameters:
    ///   - judged: The counter up to which this tenure has judged everything.
    ///   - last: The last counter that the sequencer knows of, once it heard of what is settled.
    mutating func rewind(past judged: UInt64, knownThrough last: UInt64) {
        nextToSend =
            batches[head...].firstIndex { $0.lastCounter > judged } ?? batches.count
        (pausedUntil, probe) = (nil, nil)
        known = last < settled && reported < settled ? max(last, reported) + 1..<settled + 1 : 0..<0
        guard !known.isEmpty, isAwaiting else { return }
        let batch = batches[head]
        guard batch.firstCounter <= settled, !batch.isAtomic else { return }
        // Known in part: what is left of it is sent by itself.
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

    /// A batch was discarded: all from this counter on is to be sent again, after a pause in which
    /// the answers to those behind it arrive and are ignored. Pauses grow while no outcome comes, so
    /// that what a sequencer has no room for is not sent over and over.
    ///
    /// - Parameters:
    ///   - counter: The counter that the sequencer expects.
    ///   - isFull: Whether it had no room. Then one batch is sent behind the pause, and the others when an outcome
    ///     comes.
    ///   - now: When it said so.
    ///   - first: The first pause.
    ///   - most: The longest one, if that is longer.
    mutating func rewind(
        to counter: UInt64, isFull: Bool, at now: Duration, first: Duration, most: Duration
    ) {
        guard pausedUntil == nil else { return }
        let pause = lastPause.map { max(first, min($0 * 2, most)) } ?? first
        lastPause = pause
        probe = isFull ? counter : nil
        if counter < known.upperBound { known = counter..<known.upperBound }
        // The counter may lie within a batch, when a restarted sequencer knows of a part of it only
        // that it is settled.
        nextToSend =
            batches[head...].firstIndex { $0.lastCounter >= counter } ?? batches.count
        pausedUntil = now + pause
    }

    /// The outcomes of counters up to this one are known.
    ///
    /// - Returns: false when they are not the next ones: known before, or ahead of others.
    mutating func settle(from first: UInt64, count: UInt32) -> Bool {
        guard first == settled + 1, first + UInt64(count) <= nextCounter else { return false }
        settled += UInt64(count)
        (lastPause, probe) = (nil, nil)
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
        return true
    }

    /// The session is gone: what has no outcome will never have a known one, and counters begin
    /// anew.
    ///
    /// - Returns: The first counter without an outcome, and how many.
    mutating func forget() -> (first: UInt64, count: UInt64)? {
        let open = unsettledCount > 0 ? (first: settled + 1, count: unsettledCount) : nil
        self = Submissions()
        return open
    }
}
