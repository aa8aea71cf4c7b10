import ConfluxVocabulary

/// Consecutive actions of one origin: the unit of submission.
///
/// The sequencer copies ``encoded`` into a commit as it is; it never parses a payload and, where
/// every action is admitted, copies no action by itself. A *void* batch has counters and nothing
/// else: it says that its actions are withdrawn (rule 12), and no log holds it.
public struct Batch: Sendable, Equatable {
    /// The first action's counter.
    public let firstCounter: UInt64
    /// The counter up to which the node has every outcome.
    public let settled: UInt64
    /// What its actions have to do with each other.
    public let kind: Kind
    /// What its entries concern. An entry names a row of this table.
    public let targets: [BatchTarget]
    /// How many counters it takes, at least one: as many as it has entries, unless it is void.
    public let count: UInt32
    /// The entries: each the index of its target, the length of its payload, the payload.
    public let entries: Bytes
    /// The whole batch as it travels and as it is logged.
    public let encoded: Bytes

    /// What the actions of a batch have to do with each other.
    public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        /// Each is judged by itself.
        case separate = 0
        /// They stand or fall together.
        case atomic = 1
        /// They are withdrawn: there are no entries and no targets.
        case void = 2
    }

    /// The last action's counter.
    public var lastCounter: UInt64 { firstCounter + UInt64(count) - 1 }
    /// Whether all of its actions stand or fall together.
    public var isAtomic: Bool { kind == .atomic }
    /// Whether its actions are withdrawn.
    public var isVoid: Bool { kind == .void }

    /// Made by the decoder and by ``BatchBuilder`` alone, which keep ``encoded`` true to the rest.
    init(
        firstCounter: UInt64, settled: UInt64, kind: Kind, targets: [BatchTarget],
        count: UInt32, entries: Bytes, encoded: Bytes
    ) {
        self.firstCounter = firstCounter
        self.settled = settled
        self.kind = kind
        self.targets = targets
        self.count = count
        self.entries = entries
        self.encoded = encoded
    }
}

/// A row of a batch's table of targets.
public struct BatchTarget: Sendable, Hashable {
    /// What the entries concern.
    public var target: Target
    /// The life of the store that is meant; zero: the one at admission.
    public var life: SequenceNumber
    /// The schema version of the payloads.
    public var schemaVersion: UInt32
    /// How the payloads are encoded.
    public var coding: PayloadCoding

    /// Makes a row.
    public init(
        target: Target, life: SequenceNumber = .zero, schemaVersion: UInt32, coding: PayloadCoding
    ) {
        self.target = target
        self.life = life
        self.schemaVersion = schemaVersion
        self.coding = coding
    }
}
