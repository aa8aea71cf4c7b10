import ConfluxVocabulary

extension Frame {
    /// Encodes a message of a node.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - speaker: The tenure and the session of the node's welcome.
    /// - Returns: The frame.
    public static func encode(_ message: NodeMessage, by speaker: Speaker) -> [UInt8] {
        var frame: [UInt8] = []
        encode(message, by: speaker, into: &frame)
        return frame
    }

    /// Encodes a message of a node into the memory of an earlier frame.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - speaker: The tenure and the session of the node's welcome.
    ///   - frame: Replaced by the frame.
    public static func encode(
        _ message: NodeMessage, by speaker: Speaker, into frame: inout [UInt8]
    ) {
        var writer = FrameWriter(memory: &frame)
        switch message {
        case .hello(let hello): writer.frame(hello, .hello, speaker)
        case .open(let open):
            writer.frame(open, .open, speaker, bodyBytes: 256 + open.initial.bytes.count)
        case .close(let close): writer.frame(close, .close, speaker)
        case .drop(let drop): writer.frame(drop, .drop, speaker)
        case .submit(let batch):
            writer.frame(batch, .submit, speaker, bodyBytes: 4 + batch.encoded.count)
        case .fetch(let fetch): writer.frame(fetch, .fetch, speaker)
        case .progress(let progress): writer.frame(progress, .progress, speaker)
        case .question(let question): writer.frame(question, .question, speaker)
        case .answer(let answer): writer.frame(answer, .answer, speaker)
        case .barrier(let barrier): writer.frame(barrier, .barrier, speaker)
        case .load(let load): writer.frame(load, .load, speaker)
        case .digest(let report): writer.frame(report, .digest, speaker)
        case .snapshot(let chunk):
            writer.frame(chunk, .snapshot, speaker, bodyBytes: 192 + chunk.bytes.count)
        case .skip(let skip): writer.frame(skip, .skip, speaker)
        case .freeze(let freeze): writer.frame(freeze, .freeze, speaker)
        case .upgrade(let upgrade): writer.frame(upgrade, .upgrade, speaker)
        case .migrated(let migrated): writer.frame(migrated, .migrated, speaker)
        case .leaving(let leaving): writer.frame(leaving, .leaving, speaker)
        case .bye(let bye): writer.frame(bye, .bye, speaker)
        }
        frame = writer.take()
    }

    /// Decodes a message of a node.
    ///
    /// Of a submitted batch, it checks the fixed fields and the table, but not the entries:
    /// ``Batch/validate(payloadBytesMax:)`` walks these once the batch is known to be no repetition (rule 9).
    ///
    /// - Throws: ``WireError``.
    public static func decodeNodeMessage(
        _ frame: Bytes, limits: WireLimits = .standard
    ) throws(WireError) -> NodeMessage {
        try readNodeMessage(frame, limits: limits).message
    }

    /// The same, with the frame's header.
    static func readNodeMessage(
        _ frame: Bytes, limits: WireLimits
    ) throws(WireError) -> (message: NodeMessage, header: FrameHeader) {
        var (reader, header) = try opened(frame, limits: limits)
        let message: NodeMessage
        switch header.kind {
        case .hello: message = .hello(try Hello(reading: &reader))
        case .open: message = .open(try Open(reading: &reader))
        case .close: message = .close(try Close(reading: &reader))
        case .drop: message = .drop(try Drop(reading: &reader))
        case .submit: message = .submit(try Batch(reading: &reader))
        case .fetch: message = .fetch(try Fetch(reading: &reader))
        case .progress: message = .progress(try Progress(reading: &reader))
        case .question: message = .question(try Question(reading: &reader))
        case .answer: message = .answer(try Answer(reading: &reader))
        case .barrier: message = .barrier(try Barrier(reading: &reader))
        case .load: message = .load(try Load(reading: &reader))
        case .digest: message = .digest(try DigestReport(reading: &reader))
        case .snapshot: message = .snapshot(try SnapshotChunk(reading: &reader))
        case .skip: message = .skip(try Skip(reading: &reader))
        case .freeze: message = .freeze(try Freeze(reading: &reader))
        case .upgrade: message = .upgrade(try Upgrade(reading: &reader))
        case .migrated: message = .migrated(try Migrated(reading: &reader))
        case .leaving: message = .leaving(try Leaving(reading: &reader))
        case .bye: message = .bye(try Bye(reading: &reader))
        default: throw header.unsupported("a node's message")
        }
        try reader.skipExtensions()
        return (message, header)
    }

    /// Reads the fixed fields of a submitted batch. They are enough to reject the batch by its
    /// counters, even if the rest can't be read.
    ///
    /// - Throws: ``WireError`` if the frame is none, or ends within these fields.
    public static func outline(
        ofSubmit frame: Bytes
    ) throws(WireError) -> BatchOutline {
        var (reader, header) = try opened(frame, limits: .standard)
        guard header.kind == .submit else { throw header.unsupported("a submit") }
        _ = try reader.fixed(UInt32.self, "a batch's length")
        return try BatchOutline(reading: &reader)
    }
}

extension Hello: WireField {
    static let bytesMin = 8 + 16 + 1 + 1 + 1 + 1 + 1 + 4 + 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a hello's number")
        let nonce = try reader.identifier("a process's nonce")
        let name = try reader.optional(Name.self, "a node's name")
        let role = try reader.alternative(Role.self, "a role")
        let isKeyed = try reader.flag("whether the nonce comes from a key")
        let process = isKeyed ? try reader.identifier("a process's own number") : nil
        let session = try reader.optional(SessionToken.self, "a session")
        let history = try reader.optional(HistoryMark.self, "a history")
        var hosted = try reader.list(HostedStore.self, "the hosted stores")
        var bridged = try reader.list(StateBridge.self, "the bridged states")
        try reader.readExtensions(of: &bridged, &hosted)
        self.init(
            request: request, nonce: nonce, name: name, role: role, process: process,
            session: session, history: history, hosted: hosted, bridged: bridged)
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        writer.identifier(nonce)
        writer.optional(name)
        writer.code(role)
        writer.flag(process != nil)
        if let process { writer.identifier(process) }
        writer.optional(session)
        writer.optional(history)
        writer.list(hosted)
        writer.list(bridged)
        writer.shapes(of: bridged)
        writer.versions(hosted.map(\.versions))
    }
}

extension StateBridge: WireField {
    static let bytesMin = Name.bytesMin + 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let state = try Name(reading: &reader)
        self.init(state: state, schemaVersion: try reader.fixed(UInt32.self, "a schema version"))
    }

    func write(to writer: inout FrameWriter) {
        state.write(to: &writer)
        writer.fixed(schemaVersion)
    }
}

extension SessionToken: WireField {
    static let bytesMin = 16 + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let log = try reader.identifier("a log's id")
        self.init(log: log, incarnation: try reader.incarnation("an incarnation"))
    }

    func write(to writer: inout FrameWriter) {
        writer.identifier(log)
        writer.number(incarnation)
    }
}

extension HistoryMark: WireField {
    static let bytesMin = 16 + 8 + 8 + 16

    init(reading reader: inout FrameReader) throws(WireError) {
        let log = try reader.identifier("a log's id")
        let sequence = try reader.sequence("a sequence number")
        let epoch = try reader.epoch("an epoch")
        self.init(
            log: log, sequence: sequence, epoch: epoch,
            claim: try reader.identifier("a claim's nonce"))
    }

    func write(to writer: inout FrameWriter) {
        writer.identifier(log)
        writer.number(sequence)
        writer.number(epoch)
        writer.identifier(claim)
    }
}

extension HostedStore: WireField {
    static let bytesMin = StoreName.bytesMin + 8 + 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let store = try StoreName(reading: &reader)
        let life = try reader.sequence("a life")
        self.init(
            store: store, life: life,
            versions: SupportedVersions(try reader.fixed(UInt32.self, "a schema version")))
    }

    func write(to writer: inout FrameWriter) {
        store.write(to: &writer)
        writer.number(life)
        writer.fixed(versions.newest)
    }
}

extension HostingSubject: WireField {
    static let bytesMin = 1 + Name.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "a store or a state") {
        case 1: self = .store(try StoreName(reading: &reader))
        case 2: self = .state(try Name(reading: &reader))
        default: throw .malformed(at: at, expected: "a store or a state")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .store(let name): Target.store(name).write(to: &writer)
        case .state(let name): Target.state(name).write(to: &writer)
        }
    }
}

extension Open: WireField {
    static let bytesMin = 8 + HostingSubject.bytesMin + 4 + 4 + EncodedState.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a request's number")
        let subject = try HostingSubject(reading: &reader)
        let schemaVersion = try reader.fixed(UInt32.self, "a schema version")
        let events = try reader.list(Name.self, "the handled events")
        let initial = try EncodedState(reading: &reader)
        self.init(
            request: request, subject: subject, versions: SupportedVersions(schemaVersion),
            events: events, initial: initial)
        try reader.readExtensions(of: &self)
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        subject.write(to: &writer)
        writer.fixed(versions.newest)
        writer.list(events)
        initial.write(to: &writer)
        if case .state(let state) = subject {
            writer.shapes(
                of: [StateBridge(state: state, schemaVersion: versions.newest, shapes: shapes)])
        }
        writer.versions([versions])
    }
}

extension Close: WireField {
    static let bytesMin = HostingSubject.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        self.init(subject: try HostingSubject(reading: &reader))
    }

    func write(to writer: inout FrameWriter) {
        subject.write(to: &writer)
    }
}

extension Fetch: WireField {
    static let bytesMin = 8 + 8 + 4 + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a request's number")
        let from = try reader.sequence("the first number wanted")
        let limitBytes = try reader.fixed(UInt32.self, "a limit in bytes")
        self.init(
            request: request, from: from, limitBytes: limitBytes,
            acknowledged: try reader.fixed(UInt64.self, "a delivery tag"))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        writer.number(from)
        writer.fixed(limitBytes)
        writer.fixed(acknowledged)
    }
}

extension Progress: WireField {
    static let bytesMin = 8 + 8 + 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let applied = try reader.sequence("the applied number")
        let settled = try reader.number("the settled counter")
        self.init(
            applied: applied, settled: settled,
            stopped: try reader.list(StoppedStore.self, "the stopped stores"))
    }

    func write(to writer: inout FrameWriter) {
        writer.number(applied)
        writer.number(settled)
        writer.list(stopped)
    }
}
