import ConfluxVocabulary

// The payloads of entries for the target "event:conflux.timers".
//
//     timer-request = %x01 timer-order / %x02 timer-key
//     timer-order   = optional-text due optional-duration actions
//     due           = %x01 duration / %x02 timestamp
//     timer-key     = target text
//     actions       = bytes                        ; a batch

extension TimerRequest: WireField {
    /// Decodes the payload of an entry.
    ///
    /// - Throws: ``WireError``.
    package init(payload: Bytes, limits: WireLimits = .standard) throws(WireError) {
        var reader = FrameReader(payload, limits: limits)
        self = try reader.read()
        guard reader.remaining == 0 else {
            throw .malformed(at: reader.offset, expected: "the end of a timer's request")
        }
    }

    /// The payload of its entry.
    public var payload: [UInt8] {
        var writer = FrameWriter()
        write(to: &writer)
        return writer.take()
    }

    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        self =
            switch try reader.fixed(UInt8.self, "a timer's request") {
            case 1: .set(try reader.read())
            case 2: .cancel(try reader.read())
            default: throw .malformed(at: at, expected: "a timer's request")
            }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .set(let order): writer.alternative(1, order)
        case .cancel(let key): writer.alternative(2, key)
        }
    }
}

extension TimerOrder.Due: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        self =
            switch try reader.fixed(UInt8.self, "when a timer fires") {
            case 1: .after(try reader.read("a duration"))
            case 2: .at(try reader.read("a timestamp"))
            default: throw .malformed(at: at, expected: "when a timer fires")
            }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .after(let span): writer.alternative(1, span)
        case .at(let timestamp): writer.alternative(2, timestamp)
        }
    }
}

extension TimerOrder: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            key: try coder.optional(value?.key, "the key of a timer"),
            due: try coder.field(value?.due, "when a timer fires"),
            interval: try coder.optional(value?.interval, "the interval of a timer"),
            actions: try coder.field(value?.actions, "the actions of a timer"))
    }
}

extension TimerKey: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            target: try coder.field(value?.target, "a target"),
            name: try coder.field(value?.name, "the key of a timer"))
    }
}

extension TimerStatus: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            number: try coder.field(value?.number, "the number of a timer"),
            owner: try coder.optional(value?.owner, "a key's name"),
            key: try coder.optional(value?.key, "the key of a timer"),
            targets: try coder.field(value?.targets, "the targets of a timer"),
            due: try coder.field(value?.due, "a timestamp"),
            interval: try coder.optional(value?.interval, "the interval of a timer"))
    }
}

/// A timer in a checkpoint.
extension TimerTable.Timer: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            number: try coder.positive(value?.number, "the number of a timer"),
            owner: try coder.optional(value?.owner, "a key's name"),
            order: try coder.field(value?.order, "a timer"),
            due: try coder.field(value?.due, "when a timer fires"))
    }
}
