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

extension HistorySection {
    /// The encoding.
    package var encoded: [UInt8] {
        var writer = FrameWriter()
        switch self {
        case .head(let log, let from, let through, let target):
            writer.fixed(UInt8(1))
            writer.identifier(log)
            writer.number(from)
            writer.number(through)
            writer.optional(target)
        case .start(let start):
            writer.fixed(UInt8(2))
            start.store.write(to: &writer)
            writer.number(start.life)
            start.snapshot.write(to: &writer)
            writer.fixed(start.version.version)
            writer.optional(start.version.migrated)
            writer.flag(start.aside != nil)
            if let aside = start.aside { writer.block(aside) }
            writer.fixed(UInt32(start.skipped.count))
            for sequence in start.skipped { writer.number(sequence) }
            writer.number(start.through)
        case .check(let place, let snapshot):
            writer.fixed(UInt8(3))
            place.write(to: &writer)
            snapshot.write(to: &writer)
        case .commit(let commit):
            writer.fixed(UInt8(4))
            writer.raw(commit.encodedBody())
        case .recorded(let record):
            writer.fixed(UInt8(5))
            writer.fixed(UInt32(record.refusals.count))
            for refusal in record.refusals {
                writer.number(refusal.sequence)
                refusal.store.write(to: &writer)
                writer.block(Array(refusal.reason.utf8)[...])
            }
            for point in record.points {
                writer.number(point.sequence)
                point.store.write(to: &writer)
                writer.fixed(point.version)
                writer.fixed(point.digest)
            }
        case .end(let count):
            writer.fixed(UInt8(6))
            writer.number(count)
        }
        return writer.take()
    }

    /// Decodes a section.
    ///
    /// - Throws: ``WireError``.
    package static func decode(_ bytes: Bytes) throws(WireError) -> HistorySection {
        var reader = FrameReader(bytes, limits: .standard)
        let section = try HistorySection(reading: &reader)
        guard reader.remaining == 0 else {
            throw .malformed(at: reader.offset, expected: "the end of the section")
        }
        return section
    }

    private init(reading reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "a section's kind") {
        case 1:
            let log = try reader.identifier("a log's id")
            let from = try reader.sequence("the first entry")
            let through = try reader.sequence("the last entry")
            self = .head(
                log: log, from: from, through: through,
                target: try reader.optional(Target.self, "the stores of a history"))
        case 2: self = .start(try HistoryStart(reading: &reader))
        case 3:
            let place = try SnapshotPlace(reading: &reader)
            self = .check(place, try Snapshot(reading: &reader))
        case 4: self = .commit(try Commit.decode(body: reader.cutRest()))
        case 5: self = .recorded(try HistoryRecord(reading: &reader))
        case 6: self = .end(count: try reader.number("a count of sections"))
        default: throw .malformed(at: at, expected: "a section of a history")
        }
    }
}

extension HistoryStart {
    fileprivate init(reading reader: inout FrameReader) throws(WireError) {
        let store = try StoreName(reading: &reader)
        let life = try reader.sequence("a life")
        let snapshot = try Snapshot(reading: &reader)
        let version = VersionInForce(
            try reader.fixed(UInt32.self, "a schema version"),
            migrated: try reader.optional(Digest.self, "a migrated state"))
        let aside =
            try reader.flag("whether entries were kept aside")
            ? try reader.block("what is kept aside") : nil
        let count = try reader.fixed(UInt32.self, "how many entries are skipped")
        var skipped: [SequenceNumber] = []
        for _ in 0..<count { skipped.append(try reader.sequence("the number of an entry")) }
        self.init(
            store: store, life: life, snapshot: snapshot, version: version, aside: aside,
            skipped: skipped, through: try reader.sequence("the last number of a start"))
    }
}

extension HistoryRecord {
    fileprivate init(reading reader: inout FrameReader) throws(WireError) {
        self.init()
        for _ in 0..<(try reader.fixed(UInt32.self, "how many entries had no effect")) {
            let sequence = try reader.sequence("the number of an entry")
            let store = try StoreName(reading: &reader)
            let at = reader.offset
            guard let reason = String(validating: try reader.block("a reason"), as: UTF8.self)
            else {
                throw .malformed(at: at, expected: "a reason in UTF-8")
            }
            refusals.append(Refusal(sequence: sequence, store: store, reason: reason))
        }
        while reader.remaining > 0 {
            let sequence = try reader.sequence("the number of an entry")
            let store = try StoreName(reading: &reader)
            points.append(
                Point(
                    sequence: sequence, store: store,
                    version: try reader.fixed(UInt32.self, "a schema version"),
                    digest: try reader.fixed(UInt64.self, "a digest")))
        }
    }
}
