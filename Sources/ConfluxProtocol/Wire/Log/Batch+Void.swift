import ConfluxVocabulary

/// Void batches, and how a batch is cut around what is withdrawn of it (rule 12).
extension Batch {
    /// A batch that withdraws its counters.
    ///
    /// - Parameters:
    ///   - firstCounter: The first counter, at least 1.
    ///   - count: How many counters, from 1 to ``WireLimits/entriesPerBatchMax``.
    ///   - settled: The counter up to which the node has every outcome.
    /// - Returns: The batch. It needs no builder.
    public static func void(firstCounter: UInt64, count: UInt32, settled: UInt64) -> Batch {
        precondition(
            firstCounter > 0 && count > 0, "\(count) counters from \(firstCounter) are none")
        let outline = BatchOutline(
            firstCounter: firstCounter, settled: settled, kind: .void, count: count)
        return Batch(outline, [], entries: [])
    }

    /// This batch with some of its counters withdrawn: its parts in their order, with void parts
    /// for the withdrawn counters. Together they have the counters of this batch.
    ///
    /// An atomic batch is withdrawn as a whole. Each part has only the rows of the table that it
    /// needs. So even many parts of a batch with many targets take no more than one row for each
    /// entry. The batch must come from this side's ``BatchBuilder``: of extensions, only conditions are
    /// carried over.
    ///
    /// - Parameters:
    ///   - withdrawn: The counters to withdraw. Counters of other batches are ignored.
    ///   - settled: The settled counter of the void parts. It must be below the first withdrawn
    ///     counter.
    /// - Returns: The parts; only this batch, if nothing of it is withdrawn or it is void.
    package func parts(withdrawing withdrawn: RangeSet<UInt64>, settled: UInt64) -> [Batch] {
        let own = withdrawn.intersection(RangeSet(firstCounter..<lastCounter + 1))
        guard !own.isEmpty, !isVoid else { return [self] }
        guard !isAtomic else {
            return [.void(firstCounter: firstCounter, count: count, settled: settled)]
        }
        var parts: [Batch] = []
        var part = BatchPart(of: self)
        var counter = firstCounter
        var rest = own.ranges[...]
        forEachEntry { row, payload in
            if let next = rest.first, counter >= next.lowerBound {
                if counter == next.lowerBound {
                    if let kept = part.finish() { parts.append(kept) }
                    let count = UInt32(next.upperBound - next.lowerBound)
                    parts.append(.void(firstCounter: counter, count: count, settled: settled))
                }
                if counter + 1 == next.upperBound { rest = rest.dropFirst() }
            } else {
                part.append(counter, row, payload)
            }
            counter += 1
        }
        if let kept = part.finish() { parts.append(kept) }
        return parts
    }
}

/// Gathers consecutive entries of a batch into a batch of their own.
private struct BatchPart {
    private let whole: Batch
    private var firstCounter: UInt64 = 0
    private var count: UInt32 = 0
    private var targets: [BatchTarget] = []
    /// The part's row for each row of the whole batch that it uses.
    private var rowNumbers: [Int: Int] = [:]
    private var entries = EntryBuffer()

    init(of whole: Batch) {
        self.whole = whole
    }

    mutating func append(_ counter: UInt64, _ row: Int, _ payload: Bytes) {
        if count == 0 { firstCounter = counter }
        count += 1
        let number = rowNumbers[row] ?? targets.count
        if number == targets.count {
            targets.append(whole.targets[row])
            rowNumbers[row] = number
        }
        payload.withUnsafeBytes { entries.append(row: number, payload: $0) }
    }

    /// - Returns: The part; nil if nothing was appended. The next part begins.
    mutating func finish() -> Batch? {
        guard count > 0 else { return nil }
        let outline = BatchOutline(
            firstCounter: firstCounter, settled: whole.settled, kind: whole.kind, count: count)
        var rows = FrameWriter()
        for target in targets { target.write(to: &rows) }
        defer { self = BatchPart(of: whole) }
        return Batch(outline, targets, rows: rows.bytes, &entries)
    }
}
