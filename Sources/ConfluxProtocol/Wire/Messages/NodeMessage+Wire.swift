import ConfluxVocabulary

extension Frame {
    /// Encodes a message of a node.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - speaker: The term and the session of the node's welcome.
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
    ///   - speaker: The term and the session of the node's welcome.
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
        case .hello: message = .hello(try reader.read())
        case .open: message = .open(try reader.read())
        case .close: message = .close(try reader.read())
        case .drop: message = .drop(try reader.read())
        case .submit: message = .submit(try reader.read())
        case .fetch: message = .fetch(try reader.read())
        case .progress: message = .progress(try reader.read())
        case .question: message = .question(try reader.read())
        case .answer: message = .answer(try reader.read())
        case .barrier: message = .barrier(try reader.read())
        case .load: message = .load(try reader.read())
        case .digest: message = .digest(try reader.read())
        case .snapshot: message = .snapshot(try reader.read())
        case .skip: message = .skip(try reader.read())
        case .freeze: message = .freeze(try reader.read())
        case .upgrade: message = .upgrade(try reader.read())
        case .migrated: message = .migrated(try reader.read())
        case .leaving: message = .leaving(try reader.read())
        case .bye: message = .bye(try reader.read())
        default: throw header.unsupported("a node's message")
        }
        try reader.skipExtensions()
        return (message, header)
    }

    /// Reads the fixed fields of a submitted batch. They are enough to reject the batch by its counters,
    /// even if the rest can't be read.
    ///
    /// - Throws: ``WireError`` if the frame is none, or ends within these fields.
    public static func outline(ofSubmit frame: Bytes) throws(WireError) -> BatchOutline {
        var (reader, header) = try opened(frame, limits: .standard)
        guard header.kind == .submit else { throw header.unsupported("a submit") }
        _ = try reader.fixed(UInt32.self, "a batch's length")
        return try BatchOutline(reading: &reader)
    }
}

extension Hello: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a hello's number"),
            nonce: try coder.field(value?.nonce, "a process's nonce"),
            name: try coder.optional(value?.name, "a node's name"),
            role: try coder.field(value?.role, "a role"),
            process: try coder.optional(value?.process, "a process's own number"),
            session: try coder.optional(value?.session, "a session"),
            history: try coder.optional(value?.history, "a history"),
            hosted: try coder.field(value?.hosted, "the hosted stores"),
            bridged: try coder.field(value?.bridged, "the bridged states"))
        let shapes = try coder.extensions(Frame.shapesTag, bridged.compactMap(StateShapes.init))
        let versions = try coder.versions(hosted.map(\.versions))
        for index in bridged.indices {
            bridged[index].shapes = shapes.last { $0.state == bridged[index].state }?.json
        }
        for index in hosted.indices { hosted[index].versions = versions[index] }
    }
}

extension Open: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            subject: try coder.field(value?.subject),
            versions: SupportedVersions(
                try coder.field(value?.versions.newest, "a schema version")),
            events: try coder.field(value?.events, "the handled events"),
            initial: try coder.field(value?.initial))
        if case .state(let state) = subject {
            let bridge = StateBridge(
                state: state, schemaVersion: versions.newest, shapes: value?.shapes)
            let told = try coder.extensions(
                Frame.shapesTag, [bridge].compactMap(StateShapes.init))
            shapes = told.last { $0.state == state }?.json
        }
        versions = try coder.versions([value?.versions ?? versions])[0]
    }
}

extension SessionToken: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            log: try coder.field(value?.log, "a log's id"),
            incarnation: try coder.field(value?.incarnation, "an incarnation"))
    }
}

extension HistoryMark: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            log: try coder.field(value?.log, "a log's id"),
            sequence: try coder.field(value?.sequence, "a sequence number"),
            epoch: try coder.field(value?.epoch, "an epoch"),
            claim: try coder.field(value?.claim, "a claim's nonce"))
    }
}

extension StateBridge: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            state: try coder.field(value?.state),
            schemaVersion: try coder.field(value?.schemaVersion, "a schema version"))
    }
}

extension HostedStore: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            store: try coder.field(value?.store), life: try coder.field(value?.life, "a life"),
            versions: SupportedVersions(
                try coder.field(value?.versions.newest, "a schema version")))
    }
}

extension Close: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            subject: try coder.field(value?.subject))
    }
}

extension Fetch: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            from: try coder.field(value?.from, "the first number wanted"),
            limitBytes: try coder.field(value?.limitBytes, "a limit in bytes"),
            acknowledged: try coder.field(value?.acknowledged, "a delivery tag"))
    }
}

extension Progress: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            applied: try coder.field(value?.applied, "the applied number"),
            settled: try coder.number(value?.settled, "the settled counter"),
            stopped: try coder.field(value?.stopped, "the stopped stores"))
    }
}
