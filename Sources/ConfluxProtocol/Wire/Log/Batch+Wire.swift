import ConfluxVocabulary

/// The layout of a batch's fixed fields.
///
/// ```
/// batch      = first-counter settled kind count rows *row extensions-length *extension *entry
///              number        number  u8   u32   u16       u32
/// ```
///
/// The entries fill the rest. So a builder can append any number of them, and whoever needs only
/// the counters need not read them.
enum BatchLayout {
    static let countOffset = 8 + 8 + 1
    /// The fixed fields before the first row.
    static let prefixBytes = countOffset + 4 + 2
    /// All fixed fields, including the length of the extensions.
    static let fixedBytes = prefixBytes + 4
    /// A row with one name of one byte.
    static let rowBytesMin = 1 + 2 + 8 + 4 + 1
    /// A row with two names of 64 bytes.
    static let rowBytesMax = 1 + 2 * (1 + Name.lengthMax) + 8 + 4 + 1
    /// A row of an event in the log, with the names of all its states.
    static let eventRowBytesMax =
        1 + 4 + (1 + StateTable.handlersMax) * (1 + Name.lengthMax) + 8 + 4 + 1
    /// A condition: the number of its row, the sequence number and the epoch.
    static let conditionBytes = 2 + 8 + 8
    /// The tag and the length of the conditions.
    static let conditionsHeadBytes = 2 + 4
    /// A row with the only condition of its batch.
    static let conditionalRowBytesMax = rowBytesMax + conditionsHeadBytes + conditionBytes
    /// The fewest bytes of an entry: both of its numbers, and no payload.
    static let entryBytesMin = 2

    static func writePrefix(_ outline: BatchOutline, rows: Int, to writer: inout FrameWriter) {
        writer.together { fields in
            fields.number(outline.firstCounter)
            fields.number(outline.settled)
            fields.fixed(outline.kind.rawValue)
            fields.fixed(outline.count)
            fields.fixed(UInt16(rows))
        }
    }
}

/// The fields of a batch before its table and its entries.
public struct BatchOutline: Sendable, Hashable {
    /// The first action's counter, at least 1.
    public let firstCounter: UInt64
    /// The counter up to which the node has every outcome.
    public let settled: UInt64
    /// Whether its actions are separate, atomic or withdrawn.
    public let kind: Batch.Kind
    /// How many counters it claims to use, at least one.
    public let count: UInt32

    /// Whether its actions are withdrawn.
    public var isVoid: Bool { kind == .void }

    init(firstCounter: UInt64, settled: UInt64, kind: Batch.Kind, count: UInt32) {
        self.firstCounter = firstCounter
        self.settled = settled
        self.kind = kind
        self.count = count
    }

    init(reading reader: inout FrameReader) throws(WireError) {
        firstCounter = try reader.positive("a batch's first counter")
        settled = try reader.number("the settled counter")
        kind = try reader.read("a batch's kind")
        count = try reader.run(from: firstCounter, "how many entries a batch has")
    }
}

extension Batch {
    /// Decodes a batch that stands by itself. Its entries are not walked: see ``validate(payloadBytesMax:)``.
    ///
    /// - Parameters:
    ///   - encoded: The ``encoded`` bytes of a batch; the result shares their storage.
    ///   - limits: The limits on lengths and counts.
    /// - Returns: The batch.
    /// - Throws: ``WireError``.
    public static func decode(
        _ encoded: Bytes, limits: WireLimits = .standard
    ) throws(WireError) -> Batch {
        var reader = FrameReader(encoded, limits: limits)
        return try Batch(filling: &reader, bytesMax: limits.batchBytesMax)
    }

    /// Makes a batch in the memory of its entries.
    ///
    /// - Parameters:
    ///   - outline: Its fields.
    ///   - targets: Its table.
    ///   - rows: The same, encoded.
    ///   - buffer: Its entries. It is empty afterwards.
    init(
        _ outline: BatchOutline, _ targets: [BatchTarget], rows: [UInt8],
        _ buffer: inout EntryBuffer
    ) {
        var head = FrameWriter()
        head.reserve(BatchLayout.fixedBytes + rows.count)
        BatchLayout.writePrefix(outline, rows: targets.count, to: &head)
        head.raw(rows[...])
        head.conditions(of: targets)
        self.init(
            outline, targets, encoded: buffer.take(behind: head.bytes[...]),
            headBytes: head.bytes.count)
    }

    /// Makes a batch of entries that are encoded.
    init(_ outline: BatchOutline, _ targets: [BatchTarget], entries: Bytes) {
        var writer = FrameWriter()
        writer.reserve(BatchLayout.fixedBytes + entries.count)
        BatchLayout.writePrefix(outline, rows: targets.count, to: &writer)
        for target in targets { target.write(to: &writer) }
        writer.conditions(of: targets)
        let headBytes = writer.bytes.count
        writer.raw(entries)
        self.init(outline, targets, encoded: writer.take()[...], headBytes: headBytes)
    }

    /// Reads a batch of at most `bytesMax` bytes that fills the rest of the reader.
    init(filling reader: inout FrameReader, bytesMax: Int) throws(WireError) {
        let at = reader.offset
        let limits = reader.limits
        guard reader.remaining <= bytesMax else {
            throw .limitExceeded(
                at: at, expected: "a batch's bytes", found: UInt64(reader.remaining),
                limit: UInt64(bytesMax))
        }
        // A copy of the reader cuts `encoded` out whole.
        var whole = reader
        let encoded = whole.cutRest()
        let outline = try BatchOutline(reading: &reader)
        guard outline.count <= limits.entriesPerBatchMax else {
            throw .limitExceeded(
                at: at + BatchLayout.countOffset, expected: "how many entries a batch has",
                found: UInt64(outline.count), limit: UInt64(limits.entriesPerBatchMax))
        }
        let rowsAt = reader.offset
        let rows = Int(try reader.fixed(UInt16.self, "how many targets a batch has"))
        guard (rows == 0) == outline.isVoid else {
            let expected = outline.isVoid ? "none, for it is void" : "at least 1"
            throw .malformed(at: rowsAt, expected: "how many targets a batch has, \(expected)")
        }
        guard rows <= limits.rowsPerBatchMax else {
            throw .limitExceeded(
                at: rowsAt, expected: "how many targets a batch has", found: UInt64(rows),
                limit: UInt64(limits.rowsPerBatchMax))
        }
        guard rows * BatchLayout.rowBytesMin <= reader.remaining else {
            throw .truncated(at: rowsAt, expected: "a batch's targets")
        }
        var targets: [BatchTarget] = []
        targets.reserveCapacity(rows)
        for _ in 0..<rows {
            targets.append(try reader.read())
        }
        let extensionsBytes = Int(try reader.fixed(UInt32.self, "a batch's extensions"))
        var extensions = try reader.nested(extensionsBytes, "a batch's extensions")
        try extensions.readConditions(of: &targets)
        if outline.isVoid {
            guard reader.remaining == 0 else {
                throw .malformed(at: reader.offset, expected: "the end of a void batch")
            }
        } else if Int(outline.count) * BatchLayout.entryBytesMin > reader.remaining {
            throw .truncated(at: reader.offset + reader.remaining, expected: "a batch's entries")
        }
        self.init(
            outline, targets, encoded: encoded, headBytes: encoded.count - reader.remaining)
    }
}

extension Batch: WireField {
    /// Reads a batch behind its length, as a submit has it.
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let length = Int(try reader.fixed(UInt32.self, "a batch's length"))
        var nested = try reader.nested(length, "a batch")
        try self.init(filling: &nested, bytesMax: reader.limits.batchBytesMax)
    }

    func write(to writer: inout FrameWriter) {
        encoded.write(to: &writer)
    }
}

extension BatchTarget: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        self.init(
            target: try reader.read(), life: try reader.read("a life"),
            schemaVersion: try reader.read("a schema version"),
            coding: try reader.read("a payload's coding"))
    }

    func write(to writer: inout FrameWriter) {
        target.write(to: &writer)
        writer.together { fields in
            fields.number(life)
            fields.fixed(schemaVersion)
            fields.fixed(coding.rawValue)
        }
    }
}
