import ConfluxVocabulary

extension Digest: WireField {
    static let bytesMin = Digest.byteCount

    init(reading reader: inout FrameReader) throws(WireError) {
        let bytes = try reader.cut(Digest.byteCount, "a digest")
        self.init { hash in bytes.withUnsafeBytes { hash.copyMemory(from: $0) } }
    }

    func write(to writer: inout FrameWriter) {
        writer.raw(bytes[...])
    }
}

extension DigestReport: WireField {
    static let bytesMin = 1 + SnapshotPlace.bytesMin + 2

    init(reading reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "what is said of a state") {
        case 1: self = .vote(try Vote(reading: &reader))
        case 2:
            let place = try SnapshotPlace(reading: &reader)
            self = .located(Location(place: place, path: try reader.text("a key path")))
        default:
            throw .malformed(at: at, expected: "what is said of a state")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .vote(let vote):
            writer.fixed(UInt8(1))
            vote.write(to: &writer)
        case .located(let location):
            writer.fixed(UInt8(2))
            location.place.write(to: &writer)
            writer.text(location.path)
        }
    }
}

extension Vote: WireField {
    static let bytesMin = SnapshotPlace.bytesMin + 4 + 2 * Digest.bytesMin + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let place = try SnapshotPlace(reading: &reader)
        let schemaVersion = try reader.fixed(UInt32.self, "a schema version")
        let digest = try Digest(reading: &reader)
        let refusals = try Digest(reading: &reader)
        self.init(
            place: place, schemaVersion: schemaVersion, digest: digest, refusals: refusals,
            byteCount: try reader.positive("a state's length"))
    }

    func write(to writer: inout FrameWriter) {
        place.write(to: &writer)
        writer.fixed(schemaVersion)
        digest.write(to: &writer)
        refusals.write(to: &writer)
        writer.number(byteCount)
    }
}

extension Divergence: WireField {
    static let bytesMin = StoreName.bytesMin + 8 + 8 + SnapshotReference.bytesMin + 1 + 1

    init(reading reader: inout FrameReader) throws(WireError) {
        let store = try StoreName(reading: &reader)
        let life = SequenceNumber(try reader.positive("a store's life"))
        let lastEqual = try reader.sequence("the last equal digest point")
        let reference = try SnapshotReference(reading: &reader)
        let isMajority = try reader.flag("whether it is a majority's")
        self.init(
            store: store, life: life, lastEqual: lastEqual, reference: reference,
            isMajority: isMajority, mustReload: try reader.flag("whether to load it"))
    }

    func write(to writer: inout FrameWriter) {
        store.write(to: &writer)
        writer.number(life)
        writer.number(lastEqual)
        reference.write(to: &writer)
        writer.flag(isMajority)
        writer.flag(mustReload)
    }
}

extension Skip: WireField {
    static let bytesMin = 8 + 8 + Target.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a request's number")
        let sequence = SequenceNumber(try reader.positive("the number of an entry"))
        self.init(request: request, sequence: sequence, target: try Target(reading: &reader))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        writer.number(sequence)
        target.write(to: &writer)
    }
}

extension Freeze: WireField {
    static let bytesMin = 8 + StoreName.bytesMin + 8 + 1

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a request's number")
        let store = try StoreName(reading: &reader)
        let life = SequenceNumber(try reader.positive("a store's life"))
        self.init(
            request: request, store: store, life: life,
            isFrozen: try reader.flag("whether to freeze the store"))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        store.write(to: &writer)
        writer.number(life)
        writer.flag(isFrozen)
    }
}

extension StoppedStore: WireField {
    static let bytesMin = StoreName.bytesMin + 8 + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let store = try StoreName(reading: &reader)
        let life = SequenceNumber(try reader.positive("a store's life"))
        self.init(
            store: store, life: life,
            sequence: SequenceNumber(try reader.positive("the number of an entry")))
    }

    func write(to writer: inout FrameWriter) {
        store.write(to: &writer)
        writer.number(life)
        writer.number(sequence)
    }
}
