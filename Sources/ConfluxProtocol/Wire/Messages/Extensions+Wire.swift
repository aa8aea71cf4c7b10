import ConfluxVocabulary

// The extensions of messages in version 1. A peer that does not know them skips them. Then actions are not checked
// before they are sent and wait without a reason, and each store has one version.

extension Frame {
    /// The tag of the extension that has, or asks for, the shapes of a state's actions.
    static let shapesTag: UInt16 = 1
    /// The tag of the extension that says what holds up a batch.
    static let heldUpTag: UInt16 = 3
    /// The tag of the extension that has the versions as which a program can host a store, besides the newest one. A
    /// program that sends none understands one version.
    static let versionsTag: UInt16 = 4
    /// The tag of the extension that has the digest of a migrated state.
    static let migratedTag: UInt16 = 5
    /// The tag of the extension of a rejection that has the version of the store.
    static let versionTag: UInt16 = 6
    /// The tag of the extension of an answer that has what an earlier start of a store needs.
    static let earlierTag: UInt16 = 7
    /// The tag of the extension of an answer with the status that has the sequencer's health.
    static let healthTag: UInt16 = 8
    /// The tag of the extension that has the conditions of a batch.
    static let conditionsTag: UInt16 = 0x8001
}

/// The shapes of a state's actions, as a node sends them: an extension for each state.
struct StateShapes: WireRecord {
    var state: Name
    var json: Bytes

    init?(_ bridge: StateBridge) {
        guard let shapes = bridge.shapes else { return nil }
        state = bridge.state
        json = shapes
    }

    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        state = try coder.field(value?.state)
        json = coder.rest(value?.json)
    }
}

extension ActionShapes: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            schemaVersion: try coder.field(value?.schemaVersion, "a schema version"),
            json: coder.rest(value?.json))
    }
}

/// The versions of stores without the newest ones, in the order of the stores.
private struct OlderVersions: WireField {
    struct Row: WireRecord {
        var oldest: UInt32
        var policy: UpgradePolicy

        init(_ versions: SupportedVersions) {
            oldest = versions.oldest
            policy = versions.policy
        }

        init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
            oldest = try coder.field(value?.oldest, "a schema version")
            policy = try coder.field(value?.policy, "when a version rises")
        }
    }

    var rows: [Row] = []

    init?(of all: [SupportedVersions]) {
        guard all.contains(where: { $0 != SupportedVersions($0.newest) }) else { return nil }
        rows = all.map(Row.init)
    }

    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        while reader.remaining > 0 { rows.append(try reader.read()) }
    }

    func write(to writer: inout FrameWriter) {
        for row in rows { row.write(to: &writer) }
    }
}

extension FieldCoder {
    /// The versions of stores, of which the newest ones are known. There is no extension if each store has one version
    /// and the default policy.
    mutating func versions(_ all: [SupportedVersions]) throws(Failure) -> [SupportedVersions] {
        let at = offset
        let older = try self.extension(Frame.versionsTag, OlderVersions(of: all), "versions")
        guard let rows = older?.rows else { return all }
        try check(
            rows.count >= all.count && zip(rows, all).allSatisfy { $0.oldest <= $1.newest }, at: at,
            "a schema version of each store, up to the newest one")
        return zip(rows, all).map {
            SupportedVersions($1.newest, oldest: $0.oldest, policy: $0.policy)
        }
    }
}
