import ConfluxVocabulary

extension Frame {
    /// Encodes a message from the sequencer to one node.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - epoch: The sequencer's tenure.
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
        case .welcome: message = .welcome(try Welcome(reading: &reader))
        case .opened: message = .opened(try Opened(reading: &reader))
        case .receipts: message = .receipts(try Receipts(reading: &reader))
        case .rejection: message = .rejection(try Rejection(reading: &reader))
        case .expected: message = .expected(try Expected(reading: &reader))
        case .entries: message = .entries(try Entries(reading: &reader))
        case .questionAsked: message = .question(try Question(reading: &reader))
        case .answerGiven: message = .answer(try Answer(reading: &reader))
        case .confirmed: message = .confirmed(try Confirmed(reading: &reader))
        case .snapshotServed: message = .snapshotServed(try SnapshotServed(reading: &reader))
        case .snapshotRequest: message = .snapshotRequest(try SnapshotRequest(reading: &reader))
        case .divergence: message = .divergence(try Divergence(reading: &reader))
        case .reload: message = .reload(try Reload(reading: &reader))
        case .migrate: message = .migrate(try Migrate(reading: &reader))
        case .redirect: message = .redirect(try Redirect(reading: &reader))
        case .farewell: message = .bye(try Bye(reading: &reader))
        default: throw header.unsupported("a sequencer's message")
        }
        try reader.skipExtensions()
        return message
    }
}

extension Welcome: WireField {
    static let bytesMin = 8 + 16 + 16 + 6 * 8 + 2 + SessionLimits.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a hello's number")
        let log = try reader.identifier("a log's id")
        let claim = try reader.identifier("a claim's nonce")
        let incarnation = try reader.incarnation("an incarnation")
        let last = try reader.sequence("the last number")
        let floor = try reader.sequence("the floor")
        let agreed = try reader.sequence("the agreed number")
        let settled = try reader.number("the settled counter")
        let lastCounter = try reader.number("the last counter")
        let feed = try reader.text("the feed's address")
        self.init(
            request: request, log: log, claim: claim, incarnation: incarnation, last: last,
            floor: floor, agreed: agreed, settled: settled, lastCounter: lastCounter,
            feed: feed, limits: try SessionLimits(reading: &reader))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        writer.identifier(log)
        writer.identifier(claim)
        writer.number(incarnation)
        writer.number(last)
        writer.number(floor)
        writer.number(agreed)
        writer.number(settled)
        writer.number(lastCounter)
        writer.text(feed)
        limits.write(to: &writer)
    }
}

extension SessionLimits: WireField {
    static let bytesMin = 3 * 4 + 2 * 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let windowBytes = try reader.fixed(UInt32.self, "a window in bytes")
        let batchBytesMax = try reader.fixed(UInt32.self, "a limit in bytes")
        let payloadBytesMax = try reader.fixed(UInt32.self, "a limit in bytes")
        let beatInterval = try reader.duration("the interval of beats")
        self.init(
            windowBytes: windowBytes, batchBytesMax: batchBytesMax,
            payloadBytesMax: payloadBytesMax, beatInterval: beatInterval,
            silenceMax: try reader.duration("the longest silence"))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(windowBytes)
        writer.fixed(batchBytesMax)
        writer.fixed(payloadBytesMax)
        writer.duration(beatInterval)
        writer.duration(silenceMax)
    }
}

extension Opened: WireField {
    static let bytesMin = 8 + Outcome.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        self.init(
            request: try reader.fixed(UInt64.self, "a request's number"),
            outcome: try Outcome(reading: &reader))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        outcome.write(to: &writer)
    }
}

extension Opened.Outcome: WireField {
    static let bytesMin = 1 + 4

    /// About how many bytes its fields take.
    var bodyBytes: Int {
        guard case .opened(_, _, _, _, let snapshot?, _, _, _) = self else { return 256 }
        return snapshot.bodyBytes
    }

    init(reading reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "what came of an open") {
        case 1:
            let life = try reader.sequence("a life")
            let schemaVersion = try reader.fixed(UInt32.self, "a schema version")
            let last = try reader.sequence("the last number")
            let floor = try reader.sequence("the floor")
            let snapshot = try reader.optional(SnapshotOffer.self, "a snapshot")
            let aside = try reader.optional(SnapshotReference.self, "what is kept aside")
            let count = try reader.count(
                limit: reader.limits.elementsPerListMax, elementBytesMin: 8, "what is skipped")
            var skipped: [SequenceNumber] = []
            for _ in 0..<count { skipped.append(try reader.sequence("the number of an entry")) }
            // A node asks for a snapshot by its number and the store's life, so it needs both.
            guard snapshot == nil || life > .zero else {
                throw .malformed(at: at, expected: "the life of a store with a snapshot")
            }
            self = .opened(
                life: life, schemaVersion: schemaVersion, last: last, floor: floor,
                snapshot: snapshot, aside: aside, skipped: skipped,
                migrated: try reader.readMigrated())
        case 2:
            let code = try reader.code(RejectionCode.self, "a rejection's code")
            self = .failed(code, message: try reader.text("a rejection's message"))
        default:
            throw .malformed(at: at, expected: "what came of an open")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .opened(
            let life, let schemaVersion, let last, let floor, let snapshot, let aside, let skipped,
            let migrated):
            writer.fixed(UInt8(1))
            writer.number(life)
            writer.fixed(schemaVersion)
            writer.number(last)
            writer.number(floor)
            writer.optional(snapshot)
            writer.optional(aside)
            writer.fixed(UInt32(skipped.count))
            for sequence in skipped { writer.number(sequence) }
            if let migrated { writer.migrated(migrated) }
        case .failed(let code, let message):
            writer.fixed(UInt8(2))
            writer.code(code)
            writer.text(message)
        }
    }
}

extension Receipts: WireField {
    static let bytesMin = 4

    init(reading reader: inout FrameReader) throws(WireError) {
        self.init(runs: try reader.list(Run.self, "the runs"))
    }

    func write(to writer: inout FrameWriter) {
        writer.list(runs)
    }
}

extension Receipts.Run: WireField {
    static let bytesMin = 8 + 4 + 8 + 8 + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let firstCounter = try reader.positive("a counter")
        let count = try reader.run(from: firstCounter, "how many actions")
        let sequenceAt = reader.offset
        let firstSequence = SequenceNumber(try reader.positive("a sequence number"))
        guard firstSequence.rawValue <= UInt64(Int64.max) - UInt64(count - 1) else {
            throw .malformed(
                at: sequenceAt, expected: "a sequence number, the last of the run at most 2^63 − 1")
        }
        let epoch = try reader.epoch("an epoch")
        self.init(
            firstCounter: firstCounter, count: count, firstSequence: firstSequence, epoch: epoch,
            timestamp: try reader.timestamp())
    }

    func write(to writer: inout FrameWriter) {
        writer.number(firstCounter)
        writer.fixed(count)
        writer.number(firstSequence)
        writer.number(epoch)
        writer.timestamp(timestamp)
    }
}

extension Rejection: WireField {
    static let bytesMin = 8 + 4 + 2 + 2

    init(reading reader: inout FrameReader) throws(WireError) {
        let firstCounter = try reader.positive("a counter")
        let count = try reader.run(from: firstCounter, "how many actions")
        let code = try reader.code(RejectionCode.self, "a rejection's code")
        self.init(
            firstCounter: firstCounter, count: count, code: code,
            message: try reader.text("a rejection's message"), version: try reader.readVersion())
    }

    func write(to writer: inout FrameWriter) {
        writer.number(firstCounter)
        writer.fixed(count)
        writer.code(code)
        writer.text(message)
        if let version { writer.version(version) }
    }
}

extension Expected: WireField {
    static let bytesMin = 8 + 1

    init(reading reader: inout FrameReader) throws(WireError) {
        let counter = try reader.positive("the expected counter")
        self.init(
            counter: counter, reason: try reader.alternative(Reason.self, "why it is expected"),
            message: try reader.readHeldUp())
    }

    func write(to writer: inout FrameWriter) {
        writer.number(counter)
        writer.code(reason)
        if let message { writer.heldUp(message) }
    }
}

extension Entries: WireField {
    static let bytesMin = 8 + 8 + 8 + 8 + 4 + 1

    /// How many bytes its fields take.
    var bodyBytes: Int { commits.reduce(Self.bytesMin) { $0 + 4 + $1.count } }

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a request's number")
        let last = try reader.sequence("the last number")
        let floor = try reader.sequence("the floor")
        let deliveryTag = try reader.fixed(UInt64.self, "a delivery tag")
        let count = try reader.count(
            limit: reader.limits.elementsPerListMax, elementBytesMin: 4, "the commits")
        var commits: [Bytes] = []
        commits.reserveCapacity(count)
        for _ in 0..<count {
            commits.append(try reader.block("a commit"))
        }
        self.init(
            request: request, last: last, floor: floor, deliveryTag: deliveryTag, commits: commits,
            damage: try reader.optional(Damage.self, "what is damaged"))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        writer.number(last)
        writer.number(floor)
        writer.fixed(deliveryTag)
        writer.fixed(UInt32(commits.count))
        for commit in commits {
            writer.block(commit)
        }
        writer.optional(damage)
    }
}

extension Damage: WireField {
    static let bytesMin = 8 + 8 + 2

    init(reading reader: inout FrameReader) throws(WireError) {
        let first = SequenceNumber(try reader.positive("the first damaged number"))
        let at = reader.offset
        let last = SequenceNumber(try reader.positive("the last damaged number"))
        guard last >= first else {
            throw .malformed(at: at, expected: "a last number that is not below the first")
        }
        self.init(
            first: first, last: last, message: try reader.text("what is damaged"))
    }

    func write(to writer: inout FrameWriter) {
        writer.number(first)
        writer.number(last)
        writer.text(message)
    }
}
