import ConfluxVocabulary

extension Frame {
    /// Encodes a message from the sequencer to one node.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - epoch: The sequencer's term.
    /// - Returns: The frame.
    public static func encode(_ message: SequencerMessage, epoch: Epoch) -> [UInt8] {
        let speaker = Speaker(epoch: epoch)
        var writer = FrameWriter()
        switch message {
        case .welcome(let welcome): writer.frame(welcome, .welcome, speaker, bodyBytes: 256)
        case .opened(let opened):
            writer.frame(opened, .opened, speaker, bodyBytes: 8 + opened.outcome.bodyBytes)
        case .receipts(let receipts):
            writer.frame(receipts, .receipts, speaker, bodyBytes: 4 + 36 * receipts.runs.count)
        case .rejection(let rejection): writer.frame(rejection, .rejection, speaker, bodyBytes: 256)
        case .expected(let expected): writer.frame(expected, .expected, speaker)
        case .entries(let entries):
            writer.frame(entries, .entries, speaker, bodyBytes: entries.bodyBytes)
        case .question(let question): writer.frame(question, .questionAsked, speaker)
        case .answer(let answer): writer.frame(answer, .answerGiven, speaker)
        case .confirmed(let confirmed): writer.frame(confirmed, .confirmed, speaker)
        case .snapshotServed(let served):
            writer.frame(
                served, .snapshotServed, speaker, bodyBytes: 192 + served.chunk.bytes.count)
        case .snapshotRequest(let request): writer.frame(request, .snapshotRequest, speaker)
        case .divergence(let divergence): writer.frame(divergence, .divergence, speaker)
        case .reload(let reload): writer.frame(reload, .reload, speaker)
        case .migrate(let migrate):
            writer.frame(migrate, .migrate, speaker, bodyBytes: migrate.snapshot.bodyBytes)
        case .redirect(let redirect): writer.frame(redirect, .redirect, speaker)
        case .bye(let bye): writer.frame(bye, .farewell, speaker)
        }
        return writer.take()
    }

    /// Decodes a message from the sequencer to one node.
    ///
    /// The commits of `entries` are cut out, and not parsed: see ``Commit/decode(body:limits:)``.
    ///
    /// - Throws: ``WireError``.
    public static func decodeSequencerMessage(
        _ frame: Bytes, limits: WireLimits = .standard
    ) throws(WireError) -> SequencerMessage {
        var (reader, header) = try opened(frame, limits: limits)
        let message: SequencerMessage
        switch header.kind {
        case .welcome: message = .welcome(try reader.read())
        case .opened: message = .opened(try reader.read())
        case .receipts: message = .receipts(try reader.read())
        case .rejection: message = .rejection(try reader.read())
        case .expected: message = .expected(try reader.read())
        case .entries: message = .entries(try reader.read())
        case .questionAsked: message = .question(try reader.read())
        case .answerGiven: message = .answer(try reader.read())
        case .confirmed: message = .confirmed(try reader.read())
        case .snapshotServed: message = .snapshotServed(try reader.read())
        case .snapshotRequest: message = .snapshotRequest(try reader.read())
        case .divergence: message = .divergence(try reader.read())
        case .reload: message = .reload(try reader.read())
        case .migrate: message = .migrate(try reader.read())
        case .redirect: message = .redirect(try reader.read())
        case .farewell: message = .bye(try reader.read())
        default: throw header.unsupported("a sequencer's message")
        }
        try reader.skipExtensions()
        return message
    }
}

extension Welcome: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a hello's number"),
            log: try coder.field(value?.log, "a log's id"),
            claim: try coder.field(value?.claim, "a claim's nonce"),
            incarnation: try coder.field(value?.incarnation, "an incarnation"),
            last: try coder.field(value?.last, "the last number"),
            floor: try coder.field(value?.floor, "the floor"),
            agreed: try coder.field(value?.agreed, "the agreed number"),
            settled: try coder.number(value?.settled, "the settled counter"),
            lastCounter: try coder.number(value?.lastCounter, "the last counter"),
            feed: try coder.field(value?.feed, "the feed's address"),
            limits: try coder.field(value?.limits))
    }
}

extension SessionLimits: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            windowBytes: try coder.field(value?.windowBytes, "a window in bytes"),
            batchBytesMax: try coder.field(value?.batchBytesMax, "a limit in bytes"),
            payloadBytesMax: try coder.field(value?.payloadBytesMax, "a limit in bytes"),
            beatInterval: try coder.field(value?.beatInterval, "the interval of beats"),
            silenceMax: try coder.field(value?.silenceMax, "the longest silence"))
    }
}

extension Opened: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            outcome: try coder.field(value?.outcome))
    }
}

extension Opened.Outcome: WireField {
    /// About how many bytes its fields take.
    var bodyBytes: Int {
        guard case .opened(_, _, _, _, let snapshot?, _, _, _) = self else { return 256 }
        return snapshot.bodyBytes
    }

    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "what came of an open") {
        case 1:
            self = .opened(
                life: try reader.read("a life"),
                schemaVersion: try reader.read("a schema version"),
                last: try reader.read("the last number"), floor: try reader.read("the floor"),
                snapshot: try reader.read("a snapshot"),
                aside: try reader.read("what is kept aside"),
                skipped: try reader.read("what is skipped"),
                migrated: try reader.extension(Frame.migratedTag, nil, "a digest"))
            // A node asks for a snapshot by its number and the store's life, so it needs both.
            if case .opened(.zero, _, _, _, _?, _, _, _) = self {
                throw .malformed(at: at, expected: "the life of a store with a snapshot")
            }
        case 2:
            self = .failed(
                try reader.read("a rejection's code"),
                message: try reader.read("a rejection's message"))
        default:
            throw .malformed(at: at, expected: "what came of an open")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .opened(
            let life, let schemaVersion, let last, let floor, let snapshot, let aside, let skipped,
            let migrated):
            writer.alternative(
                1, life, schemaVersion, last, floor, snapshot, aside, skipped)
            writer.extension(Frame.migratedTag, migrated, "a digest")
        case .failed(let code, let message): writer.alternative(2, code, message)
        }
    }
}

extension Receipts: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            runs: try coder.field(value?.runs, "the runs"))
    }
}

// By hand, since a message has many: as a record, a run takes three times as long to write.
extension Receipts.Run: WireField {
    @inline(__always)
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let firstCounter = try reader.positive("a counter")
        let count = try reader.run(from: firstCounter, "how many actions")
        let at = reader.offset
        let firstSequence = SequenceNumber(try reader.positive("a sequence number"))
        guard firstSequence.rawValue <= UInt64(Int64.max) - UInt64(count - 1) else {
            throw .malformed(
                at: at, expected: "a sequence number, the last of the run at most 2^63 − 1")
        }
        self.init(
            firstCounter: firstCounter, count: count, firstSequence: firstSequence,
            epoch: try reader.read("an epoch"), timestamp: try reader.read("a timestamp"))
    }

    func write(to writer: inout FrameWriter) {
        writer.together { fields in
            fields.number(firstCounter)
            fields.fixed(count)
            fields.number(firstSequence)
            fields.number(epoch)
            fields.fixed(timestamp.rawValue)
        }
    }
}

extension Rejection: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        let firstCounter = try coder.positive(value?.firstCounter, "a counter")
        self.init(
            firstCounter: firstCounter,
            count: try coder.run(value?.count, from: firstCounter, "how many actions"),
            code: try coder.field(value?.code, "a rejection's code"),
            message: try coder.field(value?.message, "a rejection's message"),
            version: try coder.extension(Frame.versionTag, value?.version))
    }
}

extension Expected: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            counter: try coder.positive(value?.counter, "the expected counter"),
            reason: try coder.field(value?.reason, "why it is expected"),
            message: try coder.extension(
                Frame.heldUpTag, value?.message, "what holds up a batch"))
    }
}

extension Entries: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            last: try coder.field(value?.last, "the last number"),
            floor: try coder.field(value?.floor, "the floor"),
            deliveryTag: try coder.field(value?.deliveryTag, "a delivery tag"),
            commits: try coder.field(value?.commits, "the commits"),
            damage: try coder.optional(value?.damage, "what is damaged"))
    }

    /// How many bytes its fields take.
    var bodyBytes: Int { commits.reduce(37) { $0 + 4 + $1.count } }
}

extension Damage: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        let first = try coder.positive(value?.first, "the first damaged number")
        let at = coder.offset
        let last = try coder.positive(value?.last, "the last damaged number")
        try coder.check(last >= first, at: at, "a last number that is not below the first")
        self.init(
            first: first, last: last, message: try coder.field(value?.message, "what is damaged"))
    }
}

extension Beat: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            log: try coder.field(value?.log, "a log's id"),
            last: try coder.field(value?.last, "the last number"),
            floor: try coder.field(value?.floor, "the floor"))
    }
}
