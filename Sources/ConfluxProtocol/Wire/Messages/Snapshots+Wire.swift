import ConfluxVocabulary

extension Snapshot: WireField {
    static let bytesMin = 8 + 4 + EncodedState.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        let sequence = try reader.sequence("a snapshot's number")
        let schemaVersion = try reader.fixed(UInt32.self, "a schema version")
        self.init(
            sequence: sequence, schemaVersion: schemaVersion,
            state: try EncodedState(reading: &reader))
    }

    func write(to writer: inout FrameWriter) {
        writer.number(sequence)
        writer.fixed(schemaVersion)
        state.write(to: &writer)
    }
}

extension SnapshotReference: WireField {
    static let bytesMin = 8 + 4 + Digest.bytesMin + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let sequence = SequenceNumber(try reader.positive("a snapshot's number"))
        let schemaVersion = try reader.fixed(UInt32.self, "a schema version")
        let digest = try Digest(reading: &reader)
        self.init(
            sequence: sequence, schemaVersion: schemaVersion, digest: digest,
            byteCount: try reader.positive("a snapshot's length"))
    }

    func write(to writer: inout FrameWriter) {
        writer.number(sequence)
        writer.fixed(schemaVersion)
        digest.write(to: &writer)
        writer.number(byteCount)
    }
}

extension SnapshotOffer: WireField {
    static let bytesMin = 1 + SnapshotReference.bytesMin

    /// About how many bytes a message with it has.
    var bodyBytes: Int {
        guard case .whole(let snapshot) = self else { return 256 }
        return 64 + snapshot.state.bytes.count
    }

    init(reading reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "a snapshot") {
        case 1: self = .whole(try Snapshot(reading: &reader))
        case 2: self = .saved(try SnapshotReference(reading: &reader))
        default: throw .malformed(at: at, expected: "a snapshot")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .whole(let snapshot):
            writer.fixed(UInt8(1))
            snapshot.write(to: &writer)
        case .saved(let reference):
            writer.fixed(UInt8(2))
            reference.write(to: &writer)
        }
    }
}

extension SnapshotPlace: WireField {
    static let bytesMin = StoreName.bytesMin + 8 + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let store = try StoreName(reading: &reader)
        let life = SequenceNumber(try reader.positive("a store's life"))
        self.init(
            store: store, life: life,
            sequence: SequenceNumber(try reader.positive("a snapshot's number")))
    }

    func write(to writer: inout FrameWriter) {
        store.write(to: &writer)
        writer.number(life)
        writer.number(sequence)
    }
}

extension Load: WireField {
    static let bytesMin = 8 + SnapshotPlace.bytesMin + 8 + 4 + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a request's number")
        let place = try SnapshotPlace(reading: &reader)
        let offset = try reader.number("where the bytes begin")
        let limitBytes = try reader.fixed(UInt32.self, "a limit in bytes")
        self.init(
            request: request, place: place, offset: offset, limitBytes: limitBytes,
            acknowledged: try reader.fixed(UInt64.self, "a delivery tag"))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        place.write(to: &writer)
        writer.number(offset)
        writer.fixed(limitBytes)
        writer.fixed(acknowledged)
    }
}

extension SnapshotRequest: WireField {
    static let bytesMin = SnapshotPlace.bytesMin + 8 + 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let place = try SnapshotPlace(reading: &reader)
        let offset = try reader.number("where the bytes begin")
        self.init(
            place: place, offset: offset,
            limitBytes: try reader.fixed(UInt32.self, "a limit in bytes"))
    }

    func write(to writer: inout FrameWriter) {
        place.write(to: &writer)
        writer.number(offset)
        writer.fixed(limitBytes)
    }
}

extension SnapshotChunk: WireField {
    static let bytesMin = SnapshotPlace.bytesMin + 8 + 8 + 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let place = try SnapshotPlace(reading: &reader)
        let offset = try reader.number("where the bytes begin")
        let at = reader.offset
        let byteCount = try reader.number("a snapshot's length")
        let bytes = try reader.block("a part of a snapshot")
        guard offset <= byteCount, UInt64(bytes.count) <= byteCount - offset else {
            throw .malformed(at: at, expected: "a length that the part is within")
        }
        self.init(place: place, offset: offset, byteCount: byteCount, bytes: bytes)
    }

    func write(to writer: inout FrameWriter) {
        place.write(to: &writer)
        writer.number(offset)
        writer.number(byteCount)
        writer.block(bytes)
    }
}

extension SnapshotServed: WireField {
    static let bytesMin = 8 + 8 + SnapshotChunk.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a request's number")
        let deliveryTag = try reader.fixed(UInt64.self, "a delivery tag")
        self.init(
            request: request, deliveryTag: deliveryTag,
            chunk: try SnapshotChunk(reading: &reader))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        writer.fixed(deliveryTag)
        chunk.write(to: &writer)
    }
}

extension Reload: WireField {
    static let bytesMin = SnapshotPlace.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        self.init(place: try SnapshotPlace(reading: &reader))
    }

    func write(to writer: inout FrameWriter) {
        place.write(to: &writer)
    }
}
