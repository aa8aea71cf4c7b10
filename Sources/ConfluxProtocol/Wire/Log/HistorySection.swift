import ConfluxVocabulary

/// A section of a history: a range of a log, with the states that it begins with.
///
///     history  = head *start *(commit / check / recorded) end
///     start    = a store's state before the first entry
///     check    = a store's state that more than half of the log's replicas had at an entry
///     recorded = the outcomes that a program gave the entries of the commit before
///
/// Checks may come anywhere before the end, so a reader reads a history twice.
package enum HistorySection: Sendable, Equatable {
    /// The log, the first and the last entry that were asked for, and the stores; nil for all stores.
    case head(log: LogID, from: SequenceNumber, through: SequenceNumber, target: Target?)
    /// What a store begins with.
    case start(HistoryStart)
    /// A state that the log's replicas had.
    case check(SnapshotPlace, Snapshot)
    /// Entries. Commits are consecutive.
    case commit(Commit)
    /// What the recording program made of the commit before.
    case recorded(HistoryRecord)
    /// The last section, and how many came before.
    case end(count: UInt64)
}

/// What a store begins with in a history.
package struct HistoryStart: Sendable, Equatable {
    /// The store.
    package var store: StoreName
    /// Its life.
    package var life: SequenceNumber
    /// Its state.
    package var snapshot: Snapshot
    /// The schema version in force from there on.
    package var version: VersionInForce
    /// The entries behind the snapshot that the log holds no longer, as `AsideEntries` has them.
    package var aside: Bytes?
    /// The entries behind the snapshot that have no effect.
    package var skipped: [SequenceNumber]
    /// With both, the store has everything up to this number.
    package var through: SequenceNumber

    /// Makes a start.
    package init(
        store: StoreName, life: SequenceNumber, snapshot: Snapshot, version: VersionInForce,
        aside: Bytes?, skipped: [SequenceNumber], through: SequenceNumber
    ) {
        self.store = store
        self.life = life
        self.snapshot = snapshot
        self.version = version
        self.aside = aside
        self.skipped = skipped
        self.through = through
    }
}

/// What a program made of a commit.
package struct HistoryRecord: Sendable, Equatable {
    /// An entry without effect, and why it had none.
    package struct Refusal: Sendable, Equatable {
        package var sequence: SequenceNumber
        package var store: StoreName
        package var reason: String

        package init(sequence: SequenceNumber, store: StoreName, reason: String) {
            self.sequence = sequence
            self.store = store
            self.reason = reason
        }
    }

    /// The state of a store behind an entry.
    package struct Point: Sendable, Equatable {
        package var sequence: SequenceNumber
        package var store: StoreName
        /// The schema version whose form was digested: the one in force.
        package var version: UInt32
        /// The first 8 bytes of the state's digest.
        package var digest: UInt64

        package init(sequence: SequenceNumber, store: StoreName, version: UInt32, digest: UInt64) {
            self.sequence = sequence
            self.store = store
            self.version = version
            self.digest = digest
        }
    }

    /// In the order of their numbers, then of the stores' names.
    package var refusals: [Refusal] = []
    package var points: [Point] = []

    package init() {}
}

extension HistorySection: WireField {
    /// The encoding.
    package var encoded: [UInt8] {
        var writer = FrameWriter()
        write(to: &writer)
        return writer.take()
    }

    /// Decodes a section.
    ///
    /// - Throws: ``WireError``.
    package static func decode(_ bytes: Bytes) throws(WireError) -> HistorySection {
        var reader = FrameReader(bytes, limits: .standard)
        let section = try HistorySection(reading: &reader, "a section")
        guard reader.remaining == 0 else {
            throw .malformed(at: reader.offset, expected: "the end of the section")
        }
        return section
    }

    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "a section's kind") {
        case 1:
            self = .head(
                log: try reader.read("a log's id"), from: try reader.read("the first entry"),
                through: try reader.read("the last entry"),
                target: try reader.read("the stores of a history"))
        case 2: self = .start(try reader.read())
        case 3: self = .check(try reader.read(), try reader.read())
        case 4: self = .commit(try Commit.decode(body: reader.cutRest()))
        case 5: self = .recorded(try reader.read())
        case 6: self = .end(count: try reader.number("a count of sections"))
        default: throw .malformed(at: at, expected: "a section of a history")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .head(let log, let from, let through, let target):
            writer.alternative(1, log, from, through, target)
        case .start(let start): writer.alternative(2, start)
        case .check(let place, let snapshot): writer.alternative(3, place, snapshot)
        case .commit(let commit):
            writer.alternative(4)
            writer.raw(commit.encodedBody())
        case .recorded(let record): writer.alternative(5, record)
        case .end(let count):
            writer.alternative(6)
            writer.number(count)
        }
    }
}

extension HistoryStart: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            store: try coder.field(value?.store), life: try coder.field(value?.life, "a life"),
            snapshot: try coder.field(value?.snapshot),
            version: VersionInForce(
                try coder.field(value?.version.version, "a schema version"),
                migrated: try coder.optional(value?.version.migrated, "a migrated state")),
            aside: try coder.optional(value?.aside, "what is kept aside"),
            skipped: try coder.field(value?.skipped, "what is skipped"),
            through: try coder.field(value?.through, "the last number of a start"))
    }
}

extension HistoryRecord: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        refusals = try reader.read("the entries without effect")
        while reader.remaining > 0 { points.append(try reader.read()) }
    }

    func write(to writer: inout FrameWriter) {
        refusals.write(to: &writer)
        for point in points { point.write(to: &writer) }
    }
}

extension HistoryRecord.Refusal: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        sequence = try coder.field(value?.sequence, "the number of an entry")
        store = try coder.field(value?.store)
        let at = coder.offset
        let bytes = try coder.field(value.map { Array($0.reason.utf8)[...] }, "a reason")
        let text = String(validating: bytes, as: UTF8.self)
        try coder.check(text != nil, at: at, "a reason in UTF-8")
        reason = text ?? ""
    }
}

extension HistoryRecord.Point: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            sequence: try coder.field(value?.sequence, "the number of an entry"),
            store: try coder.field(value?.store),
            version: try coder.field(value?.version, "a schema version"),
            digest: try coder.field(value?.digest, "a digest"))
    }
}
