import ConfluxVocabulary

/// The outcomes of one session's actions, by counter. Rule 9 is implemented here.
///
/// An action goes to the log at most once because its counter is first judged here. Counters have
/// no gaps and begin with 1. A counter at or below ``lastCounter`` was judged before, and gets its
/// first outcome again, whatever has changed since.
///
///         settled        announced         lastCounter
///     1 …    │  records …    │   pending …      │
///            └ the node has  └ outcomes sent    └ judged; the next batch begins after it
///
/// Outcomes are announced in the order of the counters. So a rejection waits for the commits before
/// it, and the node's `settled` is a single number.
struct OutcomeLedger: Sendable, Equatable {
    /// The outcome of a run of counters.
    enum Status: Sendable, Equatable {
        /// Admitted. Its commit is not durable yet.
        case pending
        /// In the log. The numbers are consecutive from this one on.
        case committed(SequenceNumber, Epoch, Timestamp)
        /// Not in the log, and never will be.
        case rejected(RejectionCode, String)
        /// Not in the log, and never will be: the store has this version, which is not that of the condition.
        case conflict(StoreVersion, String)
    }

    /// A run of counters with the same status.
    struct Record: Sendable, Equatable {
        var first: UInt64
        var count: UInt32
        var bytes: Int
        var status: Status
        var last: UInt64 { first + UInt64(count) - 1 }
    }

    /// The last counter that was judged. *Use*: the next batch begins after it. *Invariant*: never
    /// decreases, and every counter up to it has an outcome, or is pending.
    private(set) var lastCounter: UInt64 = 0
    /// The counter up to which the node has every outcome. *Invariant*: no record ends at or below
    /// it, though one may begin below it and end above it.
    private(set) var settled: UInt64 = 0
    /// The counter up to which outcomes were sent. *Invariant*: settled ≤ announced ≤ lastCounter.
    private(set) var announced: UInt64 = 0
    /// The bytes of the pending records. *Use*: the window (rule 27).
    private(set) var pendingBytes = 0
    /// Ascending, without overlaps. Counters between two records were rejected before a restart.
    private var records: [Record] = []
    /// The records before this index are settled. They are removed when they outnumber the others.
    private var head = 0

    /// The highest counter. A node that dispatches a million actions a second reaches it after more
    /// than a hundred thousand years, so a node that sends a higher one is mistaken or hostile.
    static let counterMax: UInt64 = 1 << 62

    /// The records that are not settled.
    var openRecords: ArraySlice<Record> { records[head...] }

    /// How many records are kept.
    var recordCount: Int { records.count - head }

    /// Whether every outcome was sent.
    var isAnnounced: Bool { announced == lastCounter }

    /// Records a judgement of the counters after `lastCounter`.
    mutating func judge(count: UInt32, bytes: Int, status: Status) {
        records.append(Record(first: lastCounter + 1, count: count, bytes: bytes, status: status))
        lastCounter += UInt64(count)
        if status == .pending { pendingBytes += bytes }
    }

    /// Records a batch that the log holds, when the log is read.
    ///
    /// - Returns: false if the log is not ascending for this origin, so that no sequencer can have
    ///   written it.
    mutating func recover(
        first: UInt64, count: UInt32, settled: UInt64, at sequence: SequenceNumber, epoch: Epoch,
        timestamp: Timestamp
    ) -> Bool {
        guard first > lastCounter, settled < first else { return false }
        records.append(
            Record(
                first: first, count: count, bytes: 0,
                status: .committed(sequence, epoch, timestamp)))
        lastCounter = first + UInt64(count) - 1
        announced = lastCounter
        settle(through: settled)
        return true
    }

    /// Restores a ledger from a checkpoint. Every outcome is committed and announced. nil if the
    /// values contradict each other.
    ///
    /// - Parameters:
    ///   - lastCounter: The last counter that was judged.
    ///   - settled: The counter up to which the node has every outcome.
    ///   - runs: The committed runs above that, ascending.
    init?(lastCounter: UInt64, settled: UInt64, runs: [Receipts.Run]) {
        guard settled <= lastCounter, lastCounter <= Self.counterMax else { return nil }
        self.lastCounter = lastCounter
        self.settled = settled
        announced = lastCounter
        records.reserveCapacity(runs.count)
        var end = settled
        for run in runs {
            let record = Record(
                first: run.firstCounter, count: run.count, bytes: 0,
                status: .committed(run.firstSequence, run.epoch, run.timestamp))
            // The first run may begin at or below `settled`, and end above it.
            guard record.first > end || records.isEmpty, record.last > end,
                record.last <= lastCounter
            else { return nil }
            end = record.last
            records.append(record)
        }
    }

    /// Makes an empty ledger.
    init() {}

    /// Compares what is known, regardless of how it is stored.
    static func == (left: Self, right: Self) -> Bool {
        left.lastCounter == right.lastCounter && left.settled == right.settled
            && left.announced == right.announced && left.pendingBytes == right.pendingBytes
            && left.openRecords == right.openRecords
    }

    /// The pending record that begins with this counter is in the log.
    mutating func commit(
        first: UInt64, at sequence: SequenceNumber, epoch: Epoch, timestamp: Timestamp
    ) {
        guard let index = index(containing: first), records[index].status == .pending else {
            preconditionFailure("committed counter \(first) is not pending; \(self)")
        }
        pendingBytes -= records[index].bytes
        records[index].status = .committed(sequence, epoch, timestamp)
    }

    /// The node has every outcome up to this counter. Counters above `lastCounter` that were
    /// rejected before a restart, and are unknown since, count as judged.
    mutating func settle(through counter: UInt64) {
        guard counter > settled, counter <= Self.counterMax else { return }
        // A pending outcome can't be settled. A node that claims so is mistaken, and is ignored.
        while head < records.count, records[head].last <= counter {
            if records[head].status == .pending { return }
            settled = records[head].last
            head += 1
        }
        if head == records.count || records[head].first > counter
            // Only part of a run is settled, and the run was announced.
            || (records[head].status != .pending && counter <= announced)
        {
            settled = counter
        }
        lastCounter = max(lastCounter, settled)
        announced = max(announced, settled)
        if head > 64, head * 2 > records.count {
            records.removeFirst(head)
            head = 0
        }
    }

    /// Announces the outcomes that may be sent now: those after `announced`, up to the first
    /// pending one.
    mutating func announce() -> [Record] {
        guard head < records.count else { return [] }
        var ready: [Record] = []
        var index = firstIndex(after: announced)
        while index < records.count, records[index].status != .pending {
            ready.append(records[index])
            announced = records[index].last
            index += 1
        }
        return ready
    }

    /// The outcomes that were announced, but that the node is not known to have.
    var unsettled: [Record] {
        announced > settled ? outcomes(from: settled + 1, through: announced) : []
    }

    /// The announced outcomes of counters, for a batch that was resubmitted.
    ///
    /// Outcomes that are not announced yet are left out, since they will be announced. Counters
    /// without a record were rejected before a restart.
    func outcomes(from first: UInt64, through last: UInt64) -> [Record] {
        var found: [Record] = []
        var next = max(first, settled + 1)
        let end = min(last, announced)
        var index = firstIndex(after: next - 1)
        while next <= end {
            if index < records.count, records[index].first <= next {
                found.append(records[index].cut(from: next, through: end))
                next = records[index].last + 1
                index += 1
            } else {
                let stop = index < records.count ? min(end, records[index].first - 1) : end
                // A node that is mistaken about what it has may leave a gap of any width. Nobody
                // can need more than one run of it.
                let count = UInt32(clamping: stop - next + 1)
                found.append(
                    Record(
                        first: stop - UInt64(count) + 1, count: count, bytes: 0,
                        status: .rejected(
                            SequencerMachine.Fault.unrecorded.code,
                            SequencerMachine.Fault.unrecorded.message)))
                next = stop + 1
            }
        }
        return found
    }

    func checkInvariants() throws(BrokenInvariant) {
        try hold(settled <= announced && announced <= lastCounter, "\(self) is out of order")
        var (end, pending) = (UInt64(0), 0)
        for record in openRecords {
            try hold(
                record.first > end, "\(record) overlaps the one before it, which ends at \(end)")
            try hold(record.last > settled && record.last <= lastCounter, "\(record) in \(self)")
            try hold(
                record.status != .pending || record.first > announced, "\(record) is announced")
            if record.status == .pending { pending += record.bytes }
            end = record.last
        }
        try hold(
            pending == pendingBytes, "\(pendingBytes) pending bytes, and records with \(pending)")
    }

    /// The index of the first record that ends above this counter.
    private func firstIndex(after counter: UInt64) -> Int {
        records[head...].partitioningIndex { $0.last > counter }
    }

    private func index(containing counter: UInt64) -> Int? {
        let index = firstIndex(after: counter - 1)
        guard index < records.count, records[index].first <= counter else { return nil }
        return index
    }
}

extension OutcomeLedger.Record {
    /// The part of the run from one counter through another.
    fileprivate func cut(from lower: UInt64, through upper: UInt64) -> Self {
        let start = max(first, lower)
        let end = min(last, upper)
        var part = self
        part.first = start
        part.count = UInt32(end - start + 1)
        if case .committed(let sequence, let epoch, let timestamp) = status {
            part.status = .committed(sequence.advanced(by: start - first), epoch, timestamp)
        }
        return part
    }
}
