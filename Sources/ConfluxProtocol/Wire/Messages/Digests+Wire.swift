extension DigestReport: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "what is said of a state") {
        case 1: self = .vote(try reader.read())
        case 2: self = .located(try reader.read())
        default: throw .malformed(at: at, expected: "what is said of a state")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .vote(let vote): writer.alternative(1, vote)
        case .located(let location): writer.alternative(2, location)
        }
    }
}

extension DigestReport.Location: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            place: try coder.field(value?.place),
            path: try coder.field(value?.path, "a key path"))
    }
}

extension Vote: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            place: try coder.field(value?.place),
            schemaVersion: try coder.field(value?.schemaVersion, "a schema version"),
            digest: try coder.field(value?.digest, "a digest"),
            refusals: try coder.field(value?.refusals, "a digest"),
            byteCount: try coder.positive(value?.byteCount, "a state's length"))
    }
}

extension Divergence: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            store: try coder.field(value?.store),
            life: try coder.positive(value?.life, "a store's life"),
            lastEqual: try coder.field(value?.lastEqual, "the last equal digest point"),
            reference: try coder.field(value?.reference),
            isMajority: try coder.field(value?.isMajority, "whether it is a majority's"),
            mustReload: try coder.field(value?.mustReload, "whether to load it"))
    }
}

extension StoppedStore: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            store: try coder.field(value?.store),
            life: try coder.positive(value?.life, "a store's life"),
            sequence: try coder.positive(value?.sequence, "the number of an entry"))
    }
}
