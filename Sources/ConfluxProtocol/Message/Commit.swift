import ConfluxVocabulary

/// Consecutive entries that become durable together: the unit of the log and of the feed.
public struct Commit: Sendable, Equatable {
    /// The log that it belongs to.
    public let log: LogID
    /// The epoch of the term that committed it. The header of a frame has the sender's epoch.
    public let epoch: Epoch
    /// The epoch of the commit before it. By it a node notices that the log lost its end (rule 2).
    public let predecessor: Epoch
    /// The first entry's number.
    public let first: SequenceNumber
    /// How many entries it has, at least one.
    public let count: UInt32
    /// When the sequencer ordered it. Timestamps never go back.
    public let timestamp: Timestamp
    /// The entries in their order, in blocks of one origin.
    public let blocks: [Block]

    /// Entries of one origin.
    public enum Block: Sendable, Equatable {
        /// Actions of a node.
        case batch(Incarnation, Batch)
        /// One of the log's own records, and the name of the key that caused it, if a key did.
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

    /// The same entries, as a commit of another log.
    package func of(_ log: LogID) -> Commit {
        Commit(
            log: log, epoch: epoch, predecessor: predecessor, first: first, count: count,
            timestamp: timestamp, blocks: blocks)
    }

    /// The same entries, in the same order, in commits of about a given size.
    ///
    /// - Parameter bytesMax: A commit ends as soon as it has this many bytes of entries. An atomic batch is never
    ///   cut.
    /// - Returns: At least one commit.
    package func slices(bytesMax: Int) -> [Commit] {
        var ends: Set<SequenceNumber> = []
        var next = first
        var byteCount = 0
        func add(_ entries: UInt32, bytes: Int) {
            next = next.advanced(by: UInt64(entries))
            byteCount += bytes
            guard byteCount >= bytesMax else { return }
            ends.insert(SequenceNumber(next.rawValue - 1))
            byteCount = 0
        }
        for block in blocks {
            guard case .batch(_, let batch) = block else {
                add(1, bytes: 0)
                continue
            }
            if batch.isAtomic || byteCount + batch.entries.count < bytesMax {
                add(batch.count, bytes: batch.entries.count)
            } else {
                for entry in batch.parsedEntries { add(1, bytes: entry.payload.count + 2) }
            }
        }
        return cut(behind: ends)
    }

    /// The same entries, in the same order, in commits that end where the caller says.
    ///
    /// - Parameter ends: The numbers of entries with which a commit ends. An atomic batch is cut, too.
    /// - Returns: At least one commit.
    package func cut(behind ends: Set<SequenceNumber>) -> [Commit] {
        guard !ends.isEmpty else { return [self] }
        var parts: [Commit] = []
        var start = first
        var next = first
        var blocks: [Block] = []
        func add(_ block: Block) {
            blocks.append(block)
            next = next.advanced(by: UInt64(block.count))
            if ends.contains(SequenceNumber(next.rawValue - 1)) { end() }
        }
        func end() {
            guard !blocks.isEmpty else { return }
            parts.append(
                Commit(
                    log: log, epoch: epoch, predecessor: predecessor, first: start,
                    count: UInt32(next.rawValue - start.rawValue), timestamp: timestamp,
                    blocks: blocks))
            start = next
            blocks = []
        }
        for block in self.blocks {
            switch block {
            case .event: add(block)
            case .batch(let incarnation, let batch):
                let lower = next
                for part in batch.cut(behind: { ends.contains(lower.advanced(by: UInt64($0))) }) {
                    add(.batch(incarnation, part))
                }
            }
        }
        end()
        return parts
    }
}

/// One of the log's own records.
public enum LogEvent: Sendable, Equatable {
    /// A term began.
    case claim(epoch: Epoch, nonce: Nonce)
    /// A session began, and the entry's number is its incarnation. If `rejoining` names an
    /// incarnation, no session began: the node of that session, which had left, is present again. A
    /// keyed session outlives the bye of its process (rule 11).
    case joined(nonce: Nonce, name: Name?, rejoining: Incarnation, isKeyed: Bool)
    /// Former programs began the session of a single dispatch with it. It has no effect.
    case visited(nonce: Nonce)
    /// A node's presence ended; its session is still remembered.
    case left(Incarnation)
    /// The sequencer no longer remembers a session.
    case forgotten(Incarnation)
    /// A store began; the entry's number is its life.
    case created(StoreName, schemaVersion: UInt32, initial: EncodedState)
    /// A life of a store ended, in every process.
    case dropped(StoreName, life: SequenceNumber)
    /// A store has a newer schema version (rule 17). Every replica of that version descends from the snapshot with the
    /// number `base`, and its migrated state has this digest. The version is in force from the snapshot on. No entry
    /// for the store comes between the snapshot and here, unless somebody chose to judge these entries again. The
    /// digest is nil in logs of older sequencers.
    case upgraded(
        StoreName, life: SequenceNumber, schemaVersion: UInt32, base: SequenceNumber,
        digest: Digest?)
    /// From here on no entry reaches the store (rule 21).
    case frozen(StoreName, life: SequenceNumber, reason: FreezeReason)
    /// From here on entries reach the store again.
    case thawed(StoreName, life: SequenceNumber)
    /// Replicas of the store digest their state here (rule 18). The event comes after every batch
    /// of its commit.
    case digestPoint(StoreName, life: SequenceNumber)
    /// The entry with this number has no effect on what the target concerns (rule 23).
    case skipped(SequenceNumber, Target)
    /// From here on the stores of the state take these events, besides those that they took before.
    case handles(Name, events: [Name])
    /// The entries before this term are those of another log (`conflux fork`).
    case forked(from: LogID)
}

/// The numbers of the events in the log.
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
    case handles = 18
    case forked = 19
}

/// Why a store was frozen (rule 21).
public enum FreezeReason: UInt8, Sendable, Hashable, CaseIterable {
    /// Nobody hosts it, and the entries that concern it exceeded a bound. Opening the store thaws
    /// it.
    case abandoned = 1
    /// Its replicas did not agree, while the entries that concern it exceeded a bound.
    case unconfirmed = 2
    /// A client asked for it.
    case asked = 3
}

/// Entries of the log that can't be read.
public struct Damage: Sendable, Hashable {
    /// The number of the first of them.
    public var first: SequenceNumber
    /// The number of the last of them. Entries behind it may be readable.
    public var last: SequenceNumber
    /// What was found there, and what to do, for people.
    public var message: String

    /// Makes a description of entries that can't be read.
    public init(first: SequenceNumber, last: SequenceNumber, message: String) {
        self.first = first
        self.last = last
        self.message = message
    }
}
