extension Migrate: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            store: try coder.field(value?.store),
            life: try coder.positive(value?.life, "a store's life"),
            schemaVersion: try coder.field(value?.schemaVersion, "a schema version"),
            snapshot: try coder.field(value?.snapshot))
    }
}

extension Migrated: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            place: try coder.field(value?.place),
            schemaVersion: try coder.field(value?.schemaVersion, "a schema version"),
            outcome: try coder.field(value?.outcome))
    }
}

extension Migrated.Outcome: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "what came of a migration") {
        case 1: self = .migrated(try reader.read("a digest"))
        case 2: self = .failed(try reader.read("why a migration failed"))
        default: throw .malformed(at: at, expected: "what came of a migration")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .migrated(let digest): writer.alternative(1, digest)
        case .failed(let reason): writer.alternative(2, reason)
        }
    }
}
