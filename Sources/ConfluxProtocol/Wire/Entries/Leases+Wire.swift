import ConfluxVocabulary

// The payloads of entries for the target "event:conflux.leases".
//
//     lease-request = %x01 store-name locks / %x02 sequence epoch
//     locks         = boolean
//     lease-state   = %x01 duration / %x02 / %x03

extension LeaseRequest: WireField {
    /// Decodes the payload of an entry.
    ///
    /// - Throws: ``WireError``.
    package init(payload: Bytes, limits: WireLimits = .standard) throws(WireError) {
        var reader = FrameReader(payload, limits: limits)
        self = try reader.read()
        guard reader.remaining == 0 else {
            throw .malformed(at: reader.offset, expected: "the end of a lease's request")
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
            switch try reader.fixed(UInt8.self, "a lease's request") {
            case 1: .claim(try reader.read(), locks: try reader.read("whether a lease is a lock"))
            case 2: .release(try reader.read())
            default: throw .malformed(at: at, expected: "a lease's request")
            }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .claim(let name, let locks): writer.alternative(1, name, locks)
        case .release(let claim): writer.alternative(2, claim)
        }
    }
}

extension LeaseState: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        self =
            switch try reader.fixed(UInt8.self, "how a claim stands") {
            case 1: .held(silenceMax: try reader.read("a duration"))
            case 2: .waiting
            case 3: .over
            default: throw .malformed(at: at, expected: "how a claim stands")
            }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .held(let silence): writer.alternative(1, silence)
        case .waiting: writer.alternative(2)
        case .over: writer.alternative(3)
        }
    }
}

extension LeaseStatus: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            number: try coder.field(value?.number, "the number of a claim"),
            name: try coder.field(value?.name),
            session: try coder.field(value?.session, "an incarnation"),
            node: try coder.optional(value?.node, "a node's name"),
            isHeld: try coder.field(value?.isHeld, "whether a lease is held"),
            locks: try coder.field(value?.locks, "whether a lease is a lock"))
    }
}

/// A claim in a checkpoint.
extension LeaseTable.Claim: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            number: try coder.positive(value?.number, "the number of a claim"),
            name: try coder.field(value?.name),
            session: try coder.field(value?.session, "an incarnation"),
            owner: try coder.optional(value?.owner, "a key's name"),
            locks: try coder.field(value?.locks, "whether a lease is a lock"))
    }
}
