import ConfluxVocabulary

/// The entries of a batch, in their order, without an allocation for each.
///
/// The sequence ends early if the bytes break the grammar. Those of a validated batch, and of a
/// batch in a decoded commit, never do.
public struct BatchEntries: Sequence, Sendable {
    /// One entry.
    public struct Entry: Sendable, Equatable {
        /// The row of its target in the batch's table.
        public let target: Int
        /// The payload; it shares the batch's storage.
        public let payload: Bytes
    }

    private let bytes: Bytes
    private let rows: Int

    init(_ batch: Batch) {
        bytes = batch.entries
        rows = batch.targets.count
    }

    /// Begins at the first entry.
    public func makeIterator() -> Iterator {
        Iterator(bytes: bytes, rows: rows, position: 0)
    }

    /// Walks the entries of one batch.
    public struct Iterator: IteratorProtocol, Sendable {
        let bytes: Bytes
        let rows: Int
        var position: Int

        /// The next entry; nil behind the last.
        public mutating func next() -> Entry? {
            let start = bytes.startIndex
            guard
                let head = bytes.withUnsafeBufferPointer({ buffer in
                    EntryHead(buffer, at: position, rows: rows)
                })
            else { return nil }
            position = head.upper
            return Entry(
                target: head.target, payload: bytes[start + head.lower..<start + head.upper])
        }
    }
}

extension Batch {
    /// The entries, in their order: for each, the row of its target and its payload.
    public var parsedEntries: BatchEntries { BatchEntries(self) }

    /// Calls a function with each entry, in their order.
    ///
    /// - Parameter body: Gets the row of the entry's target, and its payload, which shares the
    ///   batch's storage. If it throws, the walk ends.
    /// - Throws: What the function throws.
    @inlinable
    public func forEachEntry<Failure: Error>(
        _ body: (_ target: Int, _ payload: Bytes) throws(Failure) -> Void
    ) throws(Failure) {
        let bytes = entries
        let start = bytes.startIndex
        let rows = targets.count
        try bytes.withUnsafeBufferPointer { (buffer) throws(Failure) in
            var position = 0
            while let head = EntryHead(buffer, at: position, rows: rows) {
                try body(head.target, bytes[start + head.lower..<start + head.upper])
                position = head.upper
            }
        }
    }

    /// Walks the entries once, and checks every index, every length, and their count.
    ///
    /// - Parameter payloadBytesMax: The most bytes of a payload.
    /// - Returns: The offsets, from 0, of the entries with a larger payload, ascending. An entry's
    ///   counter is ``firstCounter`` plus its offset.
    /// - Throws: ``WireError`` if the entries break the grammar; its offset counts from the first
    ///   byte of ``encoded``.
    /// - Complexity: O(n) in the number of entries; payloads are not read.
    public func validate(
        payloadBytesMax: Int = WireLimits.standard.payloadBytesMax
    ) throws(WireError) -> [Int] {
        try checkEntries(
            payloadBytesMax: payloadBytesMax,
            origin: entries.startIndex - encoded.startIndex)
    }

    // `origin` is the offset of the first entry in what is decoded: the offsets of errors include
    // it.
    func checkEntries(payloadBytesMax: Int, origin: Int) throws(WireError) -> [Int] {
        // A void batch uses up counters, and has no entries.
        guard !isVoid else { return [] }
        let rows = targets.count
        let claimed = Int(count)
        var oversized: [Int] = []
        let (walked, position) = entries.withUnsafeBufferPointer { buffer in
            var walked = 0
            var position = 0
            while walked < claimed, let head = EntryHead(buffer, at: position, rows: rows) {
                if head.upper - head.lower > payloadBytesMax { oversized.append(walked) }
                position = head.upper
                walked += 1
            }
            return (walked, position)
        }
        guard walked == claimed else {
            throw .malformed(
                at: origin + position, expected: "entry \(walked + 1) of the batch's \(claimed)")
        }
        guard position == entries.count else {
            throw .malformed(
                at: origin + position, expected: "the end of the batch behind \(claimed) entries")
        }
        return oversized
    }

    /// The runs of admitted entries, each as a batch of its own. The entries keep the counters that they have in this
    /// batch. The table and ``settled`` are the same.
    ///
    /// If all entries are admitted, the only run is this batch itself, and nothing is copied. If an entry of an
    /// atomic batch is not admitted, there is no run.
    ///
    /// - Parameter isAdmitted: Called once for each entry, in their order, with the entry's offset from 0 and the row
    ///   of its target. The batch must have passed ``validate(payloadBytesMax:)``.
    /// - Returns: The runs, ascending; empty if no entry is admitted.
    package func splitting(
        admitting isAdmitted: (_ offset: Int, _ target: Int) -> Bool
    ) -> [Batch] {
        let runs = cutting(where: isAdmitted)
        let isWhole = runs.count == 1 && runs[0].count == count
        return isWhole || !isAtomic ? runs : []
    }

    /// The runs of the wanted entries, each as a batch of its own. An atomic batch is cut, too.
    package func cutting(where isWanted: (_ offset: Int, _ target: Int) -> Bool) -> [Batch] {
        runs { isWanted($0, $1) ? 0 : nil }
    }

    /// The entries in runs, each as a batch of its own. An atomic batch is cut, too.
    ///
    /// - Parameter isLast: Whether a run ends with the entry at this offset.
    /// - Returns: The batches, in order.
    func cut(behind isLast: (_ offset: Int) -> Bool) -> [Batch] {
        var number = 0
        return runs { offset, _ in
            defer { if isLast(offset) { number += 1 } }
            return number
        }
    }

    /// The runs of consecutive entries that get the same number, each as a batch of its own. Entries without a number
    /// are left out.
    private func runs(_ number: (_ offset: Int, _ target: Int) -> Int?) -> [Batch] {
        var runs: [BatchRun] = []
        var lower = entries.startIndex
        var offset = 0
        var former: Int?
        for entry in parsedEntries {
            let upper = entry.payload.endIndex
            let current = number(offset, entry.target)
            if current != nil, current == former {
                runs[runs.count - 1].count += 1
                runs[runs.count - 1].upper = upper
            } else if current != nil {
                runs.append(BatchRun(first: offset, count: 1, lower: lower, upper: upper))
            }
            former = current
            lower = upper
            offset += 1
        }
        if runs.count == 1, runs[0].count == Int(count) { return [self] }
        return runs.map(cutting)
    }

    /// Encodes a run of entries anew. The table and the extensions are copied unchanged.
    private func cutting(_ run: BatchRun) -> Batch {
        let outline = BatchOutline(
            firstCounter: firstCounter + UInt64(run.first), settled: settled, kind: kind,
            count: UInt32(run.count))
        let head = encoded[encoded.startIndex..<entries.startIndex]
        var writer = FrameWriter()
        writer.reserve(head.count + run.upper - run.lower)
        BatchLayout.writePrefix(outline, rows: targets.count, to: &writer)
        writer.raw(head.dropFirst(BatchLayout.prefixBytes))
        writer.raw(entries[run.lower..<run.upper])
        return Batch(outline, targets, encoded: writer.take()[...], headBytes: head.count)
    }
}

/// Consecutive entries of a batch: the first one's offset, how many there are, and where their
/// bytes are.
private struct BatchRun {
    let first: Int
    var count: Int
    let lower: Int
    var upper: Int
}

/// Where one entry's payload is. With it, a caller that has a batch's bytes walks its entries, and no value is made
/// for each.
@usableFromInline
package struct EntryHead {
    /// The row of its target.
    @usableFromInline package let target: Int
    /// The payload's first byte, and the byte behind its last, where the next entry begins.
    @usableFromInline package let lower: Int
    @usableFromInline package let upper: Int

    /// Reads the head of the entry at `position`; nil if it breaks the grammar, or if there is
    /// none.
    @inlinable @inline(__always)
    package init?(_ buffer: UnsafeBufferPointer<UInt8>, at position: Int, rows: Int) {
        var position = position
        guard let target = Self.varint(buffer, &position), target < rows,
            let length = Self.varint(buffer, &position), length <= buffer.count - position
        else { return nil }
        self.target = target
        self.lower = position
        self.upper = position + length
    }

    /// Reads a number of at most five groups of 7 bits, the lowest first. Only the shortest form of
    /// a number is valid. The caller's comparison keeps the number within 32 bits.
    @inlinable @inline(__always)
    static func varint(
        _ buffer: UnsafeBufferPointer<UInt8>, _ position: inout Int
    ) -> Int? {
        guard position < buffer.count else { return nil }
        let byte = buffer[position]
        if byte < 0x80 {
            position += 1
            return Int(byte)
        }
        return longVarint(buffer, &position)
    }

    @usableFromInline
    static func longVarint(
        _ buffer: UnsafeBufferPointer<UInt8>, _ position: inout Int
    ) -> Int? {
        var value = 0
        var shift = 0
        var index = position
        while index < buffer.count, shift < 35 {
            let byte = buffer[index]
            index += 1
            value |= Int(byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 {
                guard byte != 0 else { return nil }
                position = index
                return value
            }
        }
        return nil
    }
}
