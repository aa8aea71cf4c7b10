import ConfluxVocabulary

/// The layout of the fields of a commit's frame.
///
/// ```
/// header | log-id epoch predecessor first timestamp count blocks | *block | *extension
///          id     number number     number i64      u32   u32
/// block  = block-kind length (incarnation batch / event)
///          u8         u32
/// ```
enum CommitLayout {
    static let timestampOffset = Frame.size + 16 + 3 * 8
    static let countOffset = timestampOffset + 8
    static let blockCountOffset = countOffset + 4
    static let blocksOffset = blockCountOffset + 4
    /// A block's kind and length.
    static let blockPrefixBytes = 1 + 4
    /// What comes before a batch in its block: the kind, the length and the incarnation.
    static let batchPrefixBytes = blockPrefixBytes + 8
    /// The fewest bytes of a block: an event with one incarnation.
    static let blockBytesMin = blockPrefixBytes + 1 + 8
    static let batchBlock: UInt8 = 1
    static let eventBlock: UInt8 = 2
}

extension Commit {
    /// Decodes a commit's body, as it is in the log and in `entries`.
    ///
    /// It checks the whole body, including the entries of every batch, and that the counts add up.
    /// It does not check the sizes of batches and payloads: what is in the log was admitted.
    ///
    /// - Parameters:
    ///   - body: The body; the batches share its storage.
    ///   - limits: The limits on lengths and counts. If they are narrower than those of any earlier
    ///     sequencer of this log, the log's history may be unreadable.
    /// - Returns: The commit.
    /// - Throws: ``WireError``; its offset counts from the body's first byte.
    public static func decode(
        body: Bytes, limits: WireLimits = .standard
    ) throws(WireError) -> Commit {
        guard body.count <= limits.frameBytesMax - Frame.size else {
            throw .limitExceeded(
                at: 0, expected: "a commit's bytes", found: UInt64(body.count),
                limit: UInt64(limits.frameBytesMax - Frame.size))
        }
        var reader = FrameReader(body, limits: limits)
        return try Commit(reading: &reader)
    }

    /// Reads a commit that fills the rest of the reader.
    init(reading reader: inout FrameReader) throws(WireError) {
        let log: LogID = try reader.read("a log's id")
        let epoch: Epoch = try reader.read("a commit's epoch")
        let predecessor: Epoch = try reader.read("the epoch of the commit before")
        let first = SequenceNumber(try reader.positive("a commit's first number"))
        let timestamp: Timestamp = try reader.read("a timestamp")
        let countAt = reader.offset
        let count = try reader.run(from: first.rawValue, "how many entries a commit has")
        let blockCount = try reader.count(
            limit: reader.limits.blocksPerCommitMax,
            elementBytesMin: CommitLayout.blockBytesMin, "how many blocks a commit has")
        var blocks: [Block] = []
        blocks.reserveCapacity(blockCount)
        var found: UInt64 = 0
        for _ in 0..<blockCount {
            let block = try Block(reading: &reader)
            found += UInt64(block.count)
            blocks.append(block)
        }
        guard found == UInt64(count) else {
            throw .malformed(
                at: countAt, expected: "the count of the \(found) entries in the commit's blocks")
        }
        try reader.skipExtensions()
        self.init(
            log: log, epoch: epoch, predecessor: predecessor, first: first, count: count,
            timestamp: timestamp, blocks: blocks)
    }

    /// Encodes the body anew.
    package func encodedBody() -> Bytes {
        var builder = CommitBuilder(log: log, epoch: epoch, predecessor: predecessor, first: first)
        for block in blocks {
            switch block {
            case .batch(let incarnation, let batch): builder.append(batch, from: incarnation)
            case .event(let event, let owner): builder.append(event, by: owner)
            }
        }
        return builder.finish(timestamp: timestamp).dropFirst(Frame.size)
    }
}

extension Commit.Block {
    init(reading reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        let kind = try reader.fixed(UInt8.self, "a block's kind")
        let length = Int(try reader.fixed(UInt32.self, "a block's length"))
        var nested = try reader.nested(length, "a block")
        switch kind {
        case CommitLayout.batchBlock:
            let incarnation: Incarnation = try nested.read("a batch's incarnation")
            let batchAt = nested.offset
            // It was admitted under the limit of its time. Here only the frame's limit bounds it.
            let batch = try Batch(filling: &nested, bytesMax: nested.remaining)
            guard !batch.isVoid else {
                throw .malformed(
                    at: batchAt, expected: "a batch with entries: no log has a void one")
            }
            guard !batch.hasConditions else {
                throw .malformed(
                    at: batchAt, expected: "a batch without conditions: no log has one with some")
            }
            _ = try batch.checkEntries(
                payloadBytesMax: .max,
                origin: batchAt + batch.entries.startIndex - batch.encoded.startIndex)
            self = .batch(incarnation, batch)
        case CommitLayout.eventBlock:
            self = .event(
                try nested.read(),
                by: try nested.extension(LogEvent.ownerTag, nil, "a key's name"))
            try nested.skipExtensions()
        default:
            throw .unsupportedKind(kind, at: at, expected: "a block")
        }
    }
}
