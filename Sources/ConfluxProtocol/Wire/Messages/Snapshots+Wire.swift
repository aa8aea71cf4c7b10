extension Snapshot: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            sequence: try coder.field(value?.sequence, "a snapshot's number"),
            schemaVersion: try coder.field(value?.schemaVersion, "a schema version"),
            state: try coder.field(value?.state))
    }
}

extension SnapshotReference: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            sequence: try coder.positive(value?.sequence, "a snapshot's number"),
            schemaVersion: try coder.field(value?.schemaVersion, "a schema version"),
            digest: try coder.field(value?.digest, "a digest"),
            byteCount: try coder.positive(value?.byteCount, "a snapshot's length"))
    }
}

extension SnapshotOffer: WireField {
    /// About how many bytes a message with it has.
    var bodyBytes: Int {
        guard case .whole(let snapshot) = self else { return 256 }
        return 64 + snapshot.state.bytes.count
    }

    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "a snapshot") {
        case 1: self = .whole(try reader.read())
        case 2: self = .saved(try reader.read())
        default: throw .malformed(at: at, expected: "a snapshot")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .whole(let snapshot): writer.alternative(1, snapshot)
        case .saved(let reference): writer.alternative(2, reference)
        }
    }
}

extension SnapshotPlace: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            store: try coder.field(value?.store),
            life: try coder.positive(value?.life, "a store's life"),
            sequence: try coder.positive(value?.sequence, "a snapshot's number"))
    }
}

extension Load: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            place: try coder.field(value?.place),
            offset: try coder.number(value?.offset, "where the bytes begin"),
            limitBytes: try coder.field(value?.limitBytes, "a limit in bytes"),
            acknowledged: try coder.field(value?.acknowledged, "a delivery tag"))
    }
}

extension SnapshotRequest: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            place: try coder.field(value?.place),
            offset: try coder.number(value?.offset, "where the bytes begin"),
            limitBytes: try coder.field(value?.limitBytes, "a limit in bytes"))
    }
}

extension SnapshotChunk: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        let place = try coder.field(value?.place)
        let offset = try coder.number(value?.offset, "where the bytes begin")
        let at = coder.offset
        let byteCount = try coder.number(value?.byteCount, "a snapshot's length")
        let bytes = try coder.field(value?.bytes, "a part of a snapshot")
        try coder.check(
            offset <= byteCount && UInt64(bytes.count) <= byteCount - offset, at: at,
            "a length that the part is within")
        self.init(place: place, offset: offset, byteCount: byteCount, bytes: bytes)
    }
}

extension SnapshotServed: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            request: try coder.field(value?.request, "a request's number"),
            deliveryTag: try coder.field(value?.deliveryTag, "a delivery tag"),
            chunk: try coder.field(value?.chunk))
    }
}

extension Reload: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            place: try coder.field(value?.place))
    }
}
