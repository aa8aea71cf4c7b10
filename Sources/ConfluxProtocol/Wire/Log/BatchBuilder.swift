import ConfluxVocabulary

/// Gathers actions that are dispatched one by one into a ``Batch``.
///
/// An action takes its payload, the row of its target (one byte for the first 128 rows) and its
/// length (one byte below 128, two below 16,384). Nothing is allocated for an action: one buffer
/// grows, and becomes the batch. Targets are interned: one comparison finds the row that
/// was used last, and a search of at most ``WireLimits/rowsPerBatchMax`` rows finds any other.
///
/// A builder is a value without a lock: one thread uses it at a time.
public struct BatchBuilder: Sendable {
    /// The limits on a batch.
    public let limits: WireLimits
    /// How many actions were appended since the last ``finish(firstCounter:settled:isAtomic:)``.
    public private(set) var count = 0

    /// *Use:* what an entry's row number means. *Invariant:* `rows` has them encoded, in order.
    package private(set) var targets: [BatchTarget] = []
    private var rows = FrameWriter()
    /// *Use:* the size of the batch. *Invariant:* the bytes of the rows' conditions; 0 if there are none.
    private var conditionsBytes = 0
    /// *Use:* the row of the last action, tried first. *Invariant:* below `targets.count`, or both 0.
    private var lastRow = 0
    private var entries = EntryBuffer()
    /// *Use:* tells the rows of this batch from those of an earlier batch. *Invariant:* rises by
    /// one with each finished batch.
    private var generation: UInt64 = 0

    /// Makes an empty builder.
    ///
    /// - Parameter limits: The limits on a batch; see ``WireLimits/granted(by:)``.
    public init(limits: WireLimits = .standard) {
        self.limits = limits
    }

    /// Whether nothing was appended since the last ``finish(firstCounter:settled:isAtomic:)``.
    public var isEmpty: Bool { count == 0 }

    /// How many bytes the batch has so far.
    public var byteCount: Int {
        BatchLayout.fixedBytes + rows.bytes.count + conditionsBytes + entries.byteCount
    }

    /// Whether one more action fits: its target into the table, its payload into the batch.
    ///
    /// If it does not fit into an empty builder, its payload is too large for any batch.
    ///
    /// - Parameters:
    ///   - target: What the action concerns.
    ///   - payloadBytes: The size of its payload.
    /// - Returns: Whether it fits.
    public func canAppend(target: BatchTarget, payloadBytes: Int) -> Bool {
        if row(of: target) != nil { return hasRoom(payloadBytes: payloadBytes, rowBytes: 0) }
        return hasRoomForRow(payloadBytes: payloadBytes)
    }

    /// Appends an action, if it fits.
    ///
    /// - Parameters:
    ///   - target: What the action concerns.
    ///   - payload: Its payload, which is copied.
    /// - Returns: Whether it was appended. If not, nothing changed: finish this batch and append it
    ///   to the next.
    public mutating func appendIfFits(
        target: BatchTarget, payload: UnsafeRawBufferPointer
    ) -> Bool {
        guard let row = row(for: target, payloadBytes: payload.count) else { return false }
        lastRow = row
        entries.append(row: row, payload: payload)
        count += 1
        return true
    }

    /// The row of a target, for ``appendIfFits(row:payload:)``. It is added if there is none yet.
    ///
    /// - Parameter target: What actions concern.
    /// - Returns: The row, valid until the next ``finish(firstCounter:settled:isAtomic:)`` of this
    ///   builder; nil if the table or the batch is full.
    public mutating func row(for target: BatchTarget) -> BatchRow? {
        row(for: target, payloadBytes: 0).map { BatchRow(index: $0, generation: generation) }
    }

    /// Whether a row belongs to the batch that is being built, and not to an earlier one.
    ///
    /// - Parameter row: A row of this builder, however old.
    /// - Returns: Whether actions may be appended to it.
    public func isCurrent(_ row: BatchRow) -> Bool { row.generation == generation }

    /// Appends an action to a known row, if it fits. This is the fastest way, since it compares no
    /// target.
    ///
    /// - Parameters:
    ///   - row: A row of this builder that ``isCurrent(_:)``.
    ///   - payload: The payload, which is copied.
    /// - Returns: Whether it was appended. If not, nothing changed: finish this batch and append it
    ///   to the next.
    public mutating func appendIfFits(row: BatchRow, payload: UnsafeRawBufferPointer) -> Bool {
        precondition(isCurrent(row), "row \(row.index) is of a batch that was finished")
        guard hasRoom(payloadBytes: payload.count, rowBytes: 0) else { return false }
        entries.append(row: row.index, payload: payload)
        count += 1
        return true
    }

    /// Appends an action. It must fit: see ``canAppend(target:payloadBytes:)``.
    ///
    /// - Parameters:
    ///   - target: What the action concerns.
    ///   - payload: Its payload, which is copied.
    public mutating func append(target: BatchTarget, payload: UnsafeRawBufferPointer) {
        let fits = appendIfFits(target: target, payload: payload)
        precondition(
            fits,
            "an action of \(payload.count) bytes does not fit into a batch of \(byteCount) bytes, "
                + "\(count) entries, \(targets.count) targets")
    }

    /// Appends an action. It must fit: see ``canAppend(target:payloadBytes:)``.
    ///
    /// - Parameters:
    ///   - target: What the action concerns.
    ///   - payload: Its payload, which is copied.
    public mutating func append(target: BatchTarget, payload: Bytes) {
        payload.withUnsafeBytes { append(target: target, payload: $0) }
    }

    /// Appends an action. It must fit: see ``canAppend(target:payloadBytes:)``.
    ///
    /// - Parameters:
    ///   - target: What the action concerns.
    ///   - payload: Its payload, which is copied.
    public mutating func append(target: BatchTarget, payload: [UInt8]) {
        payload.withUnsafeBytes { append(target: target, payload: $0) }
    }

    /// Makes the batch, in the buffer of its actions, and empties the builder for the next one.
    ///
    /// The builder must have an action.
    ///
    /// - Parameters:
    ///   - firstCounter: The counter of its first action, at least 1.
    ///   - settled: The counter up to which the node has every outcome.
    ///   - isAtomic: Whether its actions are admitted together or not at all.
    /// - Returns: The batch.
    public mutating func finish(
        firstCounter: UInt64, settled: UInt64, isAtomic: Bool = false
    ) -> Batch {
        precondition(count > 0, "a batch has at least one action")
        precondition(firstCounter > 0, "counters begin with 1")
        let outline = BatchOutline(
            firstCounter: firstCounter, settled: settled, kind: isAtomic ? .atomic : .separate,
            count: UInt32(count))
        let batch = Batch(outline, targets, rows: rows.bytes, &entries)
        count = 0
        lastRow = 0
        generation += 1
        targets = []
        rows.clear()
        conditionsBytes = 0
        return batch
    }

    /// The row of a target, if it has one.
    private func row(of target: BatchTarget) -> Int? {
        targets.withUnsafeBufferPointer { rows in
            if lastRow < rows.count, rows[lastRow] == target { return lastRow }
            return rows.firstIndex(of: target)
        }
    }

    /// The row for one more action, added if there is none yet; nil, without a new row, if the
    /// action does not fit.
    private mutating func row(for target: BatchTarget, payloadBytes: Int) -> Int? {
        if let row = row(of: target) {
            return hasRoom(payloadBytes: payloadBytes, rowBytes: 0) ? row : nil
        }
        guard hasRoomForRow(payloadBytes: payloadBytes) else { return nil }
        if targets.isEmpty { rows.reserve(BatchLayout.rowBytesMax) }
        targets.append(target)
        target.write(to: &rows)
        if target.unchangedSince != nil {
            conditionsBytes +=
                (conditionsBytes == 0 ? BatchLayout.conditionsHeadBytes : 0)
                + BatchLayout.conditionBytes
        }
        return targets.count - 1
    }

    private func hasRoomForRow(payloadBytes: Int) -> Bool {
        targets.count < limits.rowsPerBatchMax
            && hasRoom(
                payloadBytes: payloadBytes, rowBytes: BatchLayout.conditionalRowBytesMax)
    }

    private func hasRoom(payloadBytes: Int, rowBytes: Int) -> Bool {
        let entryBytes = 2 + EntryBuffer.varintBytes(payloadBytes) + payloadBytes
        return count < limits.entriesPerBatchMax
            && byteCount + rowBytes + entryBytes <= limits.batchBytesMax
    }
}

/// A row of the batch that a builder is building. With it, a target need not be searched again.
public struct BatchRow: Sendable, Hashable {
    let index: Int
    /// Which of its builder's batches it belongs to.
    let generation: UInt64
}
