import ConfluxVocabulary

extension Frame {
    /// The tag of the extension that has the versions as which a program can host a store, besides the newest one. A
    /// program that sends none understands one version.
    static let versionsTag: UInt16 = 4
    /// The tag of the extension that has the digest of a migrated state.
    static let migratedTag: UInt16 = 5
}

extension FrameWriter {
    /// Writes the versions of stores, in the order of the stores, unless each store has one and the default policy.
    mutating func versions(_ all: [SupportedVersions]) {
        guard all.contains(where: { $0 != SupportedVersions($0.newest) }) else { return }
        appendExtension(Frame.versionsTag) { writer in
            for versions in all {
                writer.fixed(versions.oldest)
                writer.code(versions.policy)
            }
        }
    }

    /// Writes the digest of a migrated state.
    mutating func migrated(_ digest: Digest) {
        appendExtension(Frame.migratedTag) { digest.write(to: &$0) }
    }
}

extension SupportedVersions {
    /// Reads the rest of the versions, of which the newest is known.
    init(reading reader: inout FrameReader, newest: UInt32) throws(WireError) {
        let at = reader.offset
        let oldest = try reader.fixed(UInt32.self, "a schema version")
        guard oldest <= newest else {
            throw .malformed(at: at, expected: "a schema version up to the newest one")
        }
        self.init(
            newest, oldest: oldest,
            policy: try reader.alternative(UpgradePolicy.self, "when a version rises"))
    }
}

extension Upgrade: WireField {
    static let bytesMin = 8 + StoreName.bytesMin + 8 + 4 + 1

    init(reading reader: inout FrameReader) throws(WireError) {
        let request = try reader.fixed(UInt64.self, "a request's number")
        let store = try StoreName(reading: &reader)
        let life = SequenceNumber(try reader.positive("a store's life"))
        let schemaVersion = try reader.fixed(UInt32.self, "a schema version")
        self.init(
            request: request, store: store, life: life, schemaVersion: schemaVersion,
            mayReplay: try reader.flag("whether entries may be judged again"))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
        store.write(to: &writer)
        writer.number(life)
        writer.fixed(schemaVersion)
        writer.flag(mayReplay)
    }
}

extension Migrate: WireField {
    static let bytesMin = StoreName.bytesMin + 8 + 4 + SnapshotOffer.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        let store = try StoreName(reading: &reader)
        let life = SequenceNumber(try reader.positive("a store's life"))
        let schemaVersion = try reader.fixed(UInt32.self, "a schema version")
        self.init(
            store: store, life: life, schemaVersion: schemaVersion,
            snapshot: try SnapshotOffer(reading: &reader))
    }

    func write(to writer: inout FrameWriter) {
        store.write(to: &writer)
        writer.number(life)
        writer.fixed(schemaVersion)
        snapshot.write(to: &writer)
    }
}

extension Migrated: WireField {
    static let bytesMin = SnapshotPlace.bytesMin + 4 + 1 + 2

    init(reading reader: inout FrameReader) throws(WireError) {
        let place = try SnapshotPlace(reading: &reader)
        let schemaVersion = try reader.fixed(UInt32.self, "a schema version")
        let at = reader.offset
        let outcome: Outcome
        switch try reader.fixed(UInt8.self, "what came of a migration") {
        case 1: outcome = .migrated(try Digest(reading: &reader))
        case 2: outcome = .failed(try reader.text("why a migration failed"))
        default: throw .malformed(at: at, expected: "what came of a migration")
        }
        self.init(place: place, schemaVersion: schemaVersion, outcome: outcome)
    }

    func write(to writer: inout FrameWriter) {
        place.write(to: &writer)
        writer.fixed(schemaVersion)
        switch outcome {
        case .migrated(let digest):
            writer.fixed(UInt8(1))
            digest.write(to: &writer)
        case .failed(let reason):
            writer.fixed(UInt8(2))
            writer.text(reason)
        }
    }
}

extension Leaving: WireField {
    static let bytesMin = 8

    init(reading reader: inout FrameReader) throws(WireError) {
        self.init(request: try reader.fixed(UInt64.self, "a request's number"))
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(request)
    }
}
