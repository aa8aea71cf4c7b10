import ConfluxVocabulary

/// Consecutive entries made durable together: the unit of the log and of the feed.
public struct Commit: Sendable, Equatable {
    /// The log that it belongs to.
    public let log: LogID
    /// The tenure that committed it. The speaker's epoch stands in the frame's header.
    public let epoch: Epoch
    /// The epoch of the commit before it, by which a lost tail is noticed (rule 2).
    public let predecessor: Epoch
    /// The first entry's number.
    public let first: SequenceNumber
    /// How many entries it has, at least one.
    public let count: UInt32
    /// When the sequencer ordered it. It never goes back.
    public let timestamp: Timestamp
    /// The entries, by origin.
    public let blocks: [Block]

    /// Entries of one origin.
    public enum Block: Sendable, Equatable {
        /// Actions of a node.
        case batch(Incarnation, Batch)
        /// An entry of the log's own, and the name of the key that caused it, if one did.
        case event(LogEvent, by: Name? = nil)

        /// How many entries it has.
        public var count: UInt32 {
            switch self {
            case .batch(_, let batch): batch.count
            case .event: 1
            }
        }
    }

    /// The last entry's number.
    public var last: SequenceNumber { first.advanced(by: UInt64(count) - 1) }

    /// The same entries in commits of about so many bytes, in their order.
    ///
    /// - Parameter bytesMax: Behind so many bytes of entries the next one begins. An atomic batch is
    ///   never cut.
    /// - Returns: At least one.
    package func slices(bytesMax: Int) -> [Commit] {
        var slices: [Commit] = []
        var next = first
        var blocks: [Block] = []
        var byteCount = 0
        func cut() {
            guard !blocks.isEmpty else { return }
            let count = blocks.reduce(0) { $0 + $1.count }
            slices.append(
                Commit(
                    log: log, epoch: epoch, predecessor: predecessor, first: next, count: count,
                    timestamp: timestamp, blocks: blocks))
            next = next.advanced(by: UInt64(count))
            blocks = []
            byteCount = 0
        }
        for block in self.blocks {
            guard case .batch(let incarnation, let batch) = block else {
                blocks.append(block)
                continue
            }
            for part in batch.slices(bytesMax: bytesMax) {
                blocks.append(.batch(incarnation, part))
                byteCount += part.entries.count
                if byteCount >= bytesMax { cut() }
            }
        }
        cut()
        return slices
    }

    /// Made by the decoder alone.
    init(
        log: LogID, epoch: Epoch, predecessor: Epoch, first: SequenceNumber, count: UInt32,
        timestamp: Timestamp, blocks: [Block]
    ) {
        self.log = log
        self.epoch = epoch
        self.predecessor = predecessor
        self.first = first
        self.count = count
        self.timestamp = timestamp
        self.blocks = blocks
    }
}

/// An entry of the log's own.
public enum LogEvent: Sendable, Equatable {
    /// A tenure began.
    case claim(epoch: Epoch, nonce: Nonce)
    /// A session began; the entry's number is its incarnation. Or, where `rejoining` names one, the
    /// node of that session, which had left, is present again under its old incarnation. A keyed
    /// session outlives the bye of its process (rule 11).
    case joined(nonce: Nonce, name: Name?, rejoining: Incarnation, isKeyed: Bool)
    /// A node that does not join dispatches; the entry's number is the incarnation of its session
    /// (rule 42).
    case visited(nonce: Nonce)
    /// A node's presence ended; its session is still remembered.
    case left(Incarnation)
    /// A session is remembered no longer.
    case forgotten(Incarnation)
    /// A store began; the entry's number is its life.
    case created(StoreName, schemaVersion: UInt32, initial: EncodedState)
    /// A life of a store is over, in every process.
    case dropped(StoreName, life: SequenceNumber)
    /// A store's state has a newer schema version from here on (rule 17). Every replica of that
    /// version descends from the snapshot with the number `base`, which it has migrated.
    case upgraded(
        StoreName, life: SequenceNumber, schemaVersion: UInt32, base: SequenceNumber)
    /// From here on no entry reaches the store (rule 21).
    case frozen(StoreName, life: SequenceNumber, reason: FreezeReason)
    /// From here on entries reach the store again.
    case thawed(StoreName, life: SequenceNumber)
    /// Replicas of the store digest their state here (rule 18). It stands behind every batch of its
    /// commit.
    case digestPoint(StoreName, life: SequenceNumber)
    /// That entry has no effect on what it concerns (rule 23).
    case skipped(SequenceNumber, Target)
}

/// The numbers under which events are logged. All are reserved from the first version on.
public enum LogEventKind: UInt8, Sendable, CaseIterable {
    case claim = 1
    case joined = 2
    case left = 3
    case forgotten = 4
    case created = 5
    case dropped = 6
    case upgraded = 7
    case frozen = 8
    case thawed = 9
    case digestPoint = 10
    case lockGranted = 11
    case lockReleased = 12
    case timerSet = 13
    case timerFired = 14
    case skipped = 15
    case restored = 16
    case visited = 17
}

/// Why a store was frozen (rule 21).
public enum FreezeReason: UInt8, Sendable, Hashable, CaseIterable {
    /// Nobody hosts it, and what concerns it grew past a bound. Who opens it thaws it.
    case abandoned = 1
    /// Its replicas did not agree for a bound of log.
    case unconfirmed = 2
    /// Somebody asked for it.
    case asked = 3
}
