import ConfluxVocabulary

/// Consecutive actions of one origin: the unit of submission.
///
/// The sequencer never parses a payload. It copies ``encoded`` into a commit as it is, unless it
/// rejects some of the actions. A *void* batch has counters and nothing else: it withdraws its
/// actions (rule 12), and no log holds it.
public struct Batch: Sendable, Equatable {
    /// The first action's counter.
    public let firstCounter: UInt64
    /// The counter up to which the node has every outcome.
    public let settled: UInt64
    /// Whether its actions are separate, atomic or withdrawn.
    public let kind: Kind
    /// The table of targets. Each entry names a row of it.
    public let targets: [BatchTarget]
    /// How many counters it uses, at least one. Unless it is void, it has as many entries.
    public let count: UInt32
    /// The entries: for each, the row of its target, the length of its payload, and the payload.
    public let entries: Bytes
    /// The whole batch, as it is sent and as it is logged.
    public let encoded: Bytes

    /// How the actions of a batch relate to each other.
    public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        /// Each action is judged by itself.
        case separate = 0
        /// All actions are admitted, or none is.
        case atomic = 1
        /// The actions are withdrawn: there are no entries and no targets.
        case void = 2
    }

    /// The same batch in memory of its own.
    var copied: Batch {
        let outline = BatchOutline(
            firstCounter: firstCounter, settled: settled, kind: kind, count: count)
        return Batch(
            outline, targets, encoded: Array(encoded)[...],
            headBytes: encoded.count - entries.count)
    }

    /// The last action's counter.
    public var lastCounter: UInt64 { firstCounter + UInt64(count) - 1 }
    /// Whether all of its actions are admitted, or none is.
    public var isAtomic: Bool { kind == .atomic }
    /// Whether its actions are withdrawn.
    public var isVoid: Bool { kind == .void }

    /// For code that encodes, decodes or cuts batches. The caller keeps the parts consistent.
    ///
    /// - Parameters:
    ///   - outline: Its fields.
    ///   - targets: Its table.
    ///   - encoded: The whole batch.
    ///   - headBytes: How many of these bytes come before the entries.
    init(_ outline: BatchOutline, _ targets: [BatchTarget], encoded: Bytes, headBytes: Int) {
        firstCounter = outline.firstCounter
        settled = outline.settled
        kind = outline.kind
        count = outline.count
        self.targets = targets
        entries = encoded.dropFirst(headBytes)
        self.encoded = encoded
    }
}

/// A row of a batch's table of targets.
public struct BatchTarget: Sendable, Hashable {
    /// The target of the entries.
    public var target: Target
    /// The life of the store that is meant; zero means the life at admission.
    public var life: SequenceNumber
    /// The schema version of the payloads.
    public var schemaVersion: UInt32
    /// How the payloads are encoded.
    public var coding: PayloadCoding
    /// The condition of the entries: each is admitted only if no entry behind this version concerns the store. *Use*: for
    /// a single store. *Invariant*: nil in a log, since the condition was judged before.
    public var unchangedSince: StoreVersion?

    /// Makes a row.
    public init(
        target: Target, life: SequenceNumber = .zero, schemaVersion: UInt32, coding: PayloadCoding,
        unchangedSince: StoreVersion? = nil
    ) {
        self.unchangedSince = unchangedSince
        self.target = target
        self.life = life
        self.schemaVersion = schemaVersion
        self.coding = coding
    }
}
