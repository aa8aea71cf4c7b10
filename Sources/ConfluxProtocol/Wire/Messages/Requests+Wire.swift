extension Barrier: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"))
    }
}

extension Leaving: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"))
    }
}

extension Drop: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            store: try coder.field(value?.store),
            life: try coder.positive(value?.life, "a store's life"))
    }
}

extension Skip: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            sequence: try coder.positive(value?.sequence, "the number of an entry"),
            target: try coder.field(value?.target))
    }
}

extension Freeze: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            store: try coder.field(value?.store),
            life: try coder.positive(value?.life, "a store's life"),
            isFrozen: try coder.field(value?.isFrozen, "whether to freeze the store"))
    }
}

extension Upgrade: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            store: try coder.field(value?.store),
            life: try coder.positive(value?.life, "a store's life"),
            schemaVersion: try coder.field(value?.schemaVersion, "a schema version"),
            mayReplay: try coder.field(value?.mayReplay, "whether entries may be judged again"))
    }
}

extension Confirmed: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            outcome: try coder.field(value?.outcome))
    }
}

extension Confirmed.Outcome: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "what came of a request") {
        case 1: self = .confirmed(try reader.read("the last number"))
        case 2:
            self = .failed(
                try reader.read("a rejection's code"),
                message: try reader.read("a rejection's message"))
        default: throw .malformed(at: at, expected: "what came of a request")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .confirmed(let last): writer.alternative(1, last)
        case .failed(let code, let message): writer.alternative(2, code, message)
        }
    }
}
