import ConfluxVocabulary

/// Void batches, and how a batch is cut around what is withdrawn of it (rule 12).
extension Batch {
    /// A batch that withdraws its counters.
    ///
    /// - Parameters:
    ///   - firstCounter: The first counter, at least 1.
    ///   - count: How many counters, from 1 to ``WireLimits/entriesPerBatchMax``.
    ///   - settled: The counter up to which the node has every outcome.
    /// - Returns: The batch, which no builder is needed for.
    public static func void(firstCounter: UInt64, count: UInt32, settled: UInt64) -> Batch {
        precondition(
            firstCounter > 0 && count > 0, "\(count) counters from \(firstCounter) are none")
        let outline = BatchOutline(
            firstCounter: firstCounter, settled: settled, kind: .void, count: count)
        var writer = FrameWriter()
        writer.reserve(BatchLayout.fixedBytes)
        BatchLayout.writePrefix(outline, rows: 0, to: &writer)
        writer.fixed(UInt32(0))  // no extensions
        let bytes = writer.take()[...]
        return Batch(
            firstCounter: firstCounter, settled: settled, kind: .void, targets: [], count: count,
            entries: bytes.suffix(0), encoded: bytes)
    }

    /// This batch with some of its counters withdrawn: its parts in their order, void ones for what
    /// is withdrawn. Together they have the counters that this batch has.
    ///
    /// An atomic batch is withdrawn whole. Each part has the rows of the table that it needs, so
    /// that many parts of a batch with many targets take no more than a row an entry. It must be a
    /// batch of this side's ``BatchBuilder``: extensions are not carried over.
    ///
    /// - Parameters:
    ///   - withdrawn: The counters; those of other batches are passed over.
    ///   - settled: What the void parts say of it; below the first counter that is withdrawn.
    /// - Returns: The parts; this batch alone where nothing of it is withdrawn.
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

/// Consecutive entries of a batch on the way to one of their own.
private struct BatchPart {
    private let whole: Batch
    private var firstCounter: UInt64 = 0
    private var count: UInt32 = 0
    private var targets: [BatchTarget] = []
    /// The part's row for each row of the whole that it uses.
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

    /// - Returns: The part, and the next one begins; nil if nothing was appended.
    mutating func finish() -> Batch? {
        guard count > 0 else { return nil }
        let outline = BatchOutline(
            firstCounter: firstCounter, settled: whole.settled, kind: whole.kind, count: count)
        var writer = FrameWriter()
        BatchLayout.writePrefix(outline, rows: targets.count, to: &writer)
        for target in targets { target.write(to: &writer) }
        writer.fixed(UInt32(0))  // no extensions
        let headBytes = writer.bytes.count
        writer.raw(entries.bytes)
        let bytes = writer.take()[...]
        defer { self = BatchPart(of: whole) }
        return Batch(
            firstCounter: firstCounter, settled: whole.settled, kind: whole.kind,
            targets: targets, count: count, entries: bytes.dropFirst(headBytes), encoded: bytes)
    }
}
