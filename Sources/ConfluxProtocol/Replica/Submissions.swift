import ConfluxVocabulary

/// The actions of this node that have no outcome yet: the node's side of rules 9 and 27.
///
/// Batches stay here, with their boundaries, until every one of their actions has an outcome.
/// After a reconnect they are submitted again, as they are; the sequencer answers what it has
/// judged before with the first outcome.
///
///       settled         ◀── unsettled batches ──▶
///     1 …    │ batch │ batch │ batch │ batch │
///                            ▲ nextToSend
struct Submissions: Sendable {
    /// The batches without outcomes, ascending. *Use*: resubmission.
    private var batches: [Batch] = []
    /// The batches before this index are settled.
    private var head = 0
    /// The index of the first batch that is not on its way. *Invariant*: head ≤ it ≤ count.
    private var nextToSend = 0
    /// The counter that the next action gets.
    private(set) var nextCounter: UInt64 = 1
    /// The counter up to which every outcome is known.
    private(set) var settled: UInt64 = 0
    /// The bytes of unsettled batches. *Use*: the window.
    private(set) var unsettledBytes = 0
    /// Nothing is sent before this moment, when a batch was discarded.
    private(set) var pausedUntil: Duration?

    /// Whether an outcome is due.
    var isAwaiting: Bool { head < batches.count }
    /// Whether a batch is to be sent.
    var isSendDue: Bool { nextToSend < batches.count }
    /// How many actions have no outcome.
    var unsettledCount: UInt64 { nextCounter - 1 - settled }

    mutating func add(_ builder: consuming BatchBuilder, isAtomic: Bool) {
        let batch = builder.finish(
            firstCounter: nextCounter, settled: settled, isAtomic: isAtomic)
        nextCounter = batch.lastCounter + 1
        unsettledBytes += batch.encoded.count
        batches.append(batch)
    }

    /// The next batch to send, if the time has come.
    mutating func next(at now: Duration) -> Batch? {
        if let until = pausedUntil {
            guard now >= until else { return nil }
            pausedUntil = nil
        }
        guard nextToSend < batches.count else { return nil }
        defer { nextToSend += 1 }
        return batches[nextToSend]
    }

    /// Everything without an outcome is to be sent again, from the start.
    mutating func rewind() {
        nextToSend = head
        pausedUntil = nil
    }

    /// A batch was discarded: all from this counter on is to be sent again, after a pause in which
    /// the answers to those behind it arrive and are ignored.
    mutating func rewind(to counter: UInt64, until: Duration) {
        guard pausedUntil == nil else { return }
        nextToSend = batches[head...].firstIndex { $0.firstCounter >= counter } ?? batches.count
        pausedUntil = until
    }

    /// What the batch with this counter concerns.
    func targets(of counter: UInt64) -> [BatchTarget] {
        batches[head...].first { $0.lastCounter >= counter }?.targets ?? []
    }

    /// The outcomes of counters up to this one are known.
    ///
    /// - Returns: false when they are not the next ones: known before, or ahead of others.
    mutating func settle(from first: UInt64, count: UInt32) -> Bool {
        guard first == settled + 1, first + UInt64(count) <= nextCounter else { return false }
        settled += UInt64(count)
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
