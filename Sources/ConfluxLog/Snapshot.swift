import ConfluxVocabulary

/// The log's description of a snapshot: the state that a store had at one number. The state itself is read in
/// parts; the log does not interpret it.
public struct SavedSnapshot: Sendable, Hashable {
    /// The largest state that a log accepts: 1 GiB.
    public static let bytesMax: UInt64 = 1 << 30
    /// How many confirmed snapshots of a store are kept.
    static let keptCount = 2

    /// What the snapshot is for.
    public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        /// A state that is kept only for comparison.
        case compared = 0
        /// A state that most replicas agreed on.
        case confirmed = 1
        /// Not a state, but entries kept aside for a store that no node hosts: those after the newest
        /// confirmed snapshot that concern the store, up to the number.
        case aside = 2
    }

    /// The key of a snapshot.
    public struct Key: Sendable, Hashable, CustomStringConvertible {
        /// The store.
        public var store: StoreName
        /// The number of the entry that created the store.
        public var life: SequenceNumber
        /// The number of the last entry that is in the state.
        public var sequence: SequenceNumber

        /// Makes a key.
        ///
        /// - Parameters:
        ///   - store: The store.
        ///   - life: The number of the entry that created the store.
        ///   - sequence: The number of the last entry that is in the state.
        public init(store: StoreName, life: SequenceNumber, sequence: SequenceNumber) {
            self.store = store
            self.life = life
            self.sequence = sequence
        }

        /// The store and the number, for people.
        public var description: String { "\(store) at \(sequence)" }
    }

    /// The store.
    public var store: StoreName
    /// The number of the entry that created the store.
    public var life: SequenceNumber
    /// The number of the last entry that is in the state.
    public var sequence: SequenceNumber
    /// The version of the state's schema.
    public var schemaVersion: UInt32
    /// The digest of its bytes.
    public var digest: Digest
    /// How many bytes it has.
    public var byteCount: UInt64
    /// What the snapshot is for.
    public var kind: Kind

    /// Makes a description of a snapshot.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - life: The number of the entry that created the store, 1 or more.
    ///   - sequence: The number of the last entry that is in the state, `life` or more.
    ///   - schemaVersion: The version of the state's schema.
    ///   - digest: The digest of its bytes.
    ///   - byteCount: How many bytes it has, at most ``bytesMax``.
    ///   - kind: What it is for.
    public init(
        store: StoreName, life: SequenceNumber, sequence: SequenceNumber, schemaVersion: UInt32,
        digest: Digest, byteCount: UInt64, kind: Kind
    ) {
        self.store = store
        self.life = life
        self.sequence = sequence
        self.schemaVersion = schemaVersion
        self.digest = digest
        self.byteCount = byteCount
        self.kind = kind
    }

    /// The snapshot's key.
    public var key: Key { Key(store: store, life: life, sequence: sequence) }

    /// The snapshots of the same store that this one retires when it is complete: those of former lives, and
    /// of its own life
    ///
    /// - if this one is confirmed: all but the newest confirmed ones, so that ``keptCount`` of them remain,
    ///   and entries kept aside that it covers;
    /// - otherwise: those of its own kind.
    ///
    /// - Parameter others: Complete snapshots of the same store.
    /// - Returns: Those that it retires.
    package func retires(among others: [SavedSnapshot]) -> [SavedSnapshot] {
        guard kind == .confirmed else {
            return others.filter { other in
                guard other.life == life else { return other.life < life }
                return other.kind == kind || (other.kind == .compared && other.sequence == sequence)
            }
        }
        let rivals = others.filter {
            $0.life == life && $0.kind == .confirmed && $0.sequence != sequence
        }
        let newest = (rivals.map(\.sequence) + [sequence]).sorted(by: >).prefix(Self.keptCount)
        return others.filter { other in
            guard other.life == life else { return other.life < life }
            let isNewer = other.kind == .aside && other.sequence > sequence
            return !isNewer && !(rivals.contains(other) && newest.contains(other.sequence))
        }
    }

    /// Whether this snapshot is retired as soon as it is complete. A key has only one snapshot, and one for
    /// comparison yields to the others. Entries that a confirmed snapshot covers, and anything of a former
    /// life, are of no use.
    ///
    /// - Parameter others: Complete snapshots of the same store.
    /// - Returns: Whether it is retired.
    package func gives(wayTo others: [SavedSnapshot]) -> Bool {
        others.contains { other in
            guard other.life == life else { return other.life > life }
            return switch kind {
            case .confirmed: false
            case .aside: other.kind == .confirmed && other.sequence >= sequence
            case .compared: other.kind != .compared && other.sequence == sequence
            }
        }
    }

    /// The confirmed snapshots that newer ones of the same stores supersede. They are kept in case the newer ones
    /// are damaged, but a log that is nearly full gives them up.
    ///
    /// - Parameter all: Complete snapshots.
    /// - Returns: All of them but the newest of each life.
    package static func superseded(among all: [SavedSnapshot]) -> [SavedSnapshot] {
        var newest: [SequenceNumber: SequenceNumber] = [:]
        let confirmed = all.filter { $0.kind == .confirmed }
        for snapshot in confirmed {
            newest[snapshot.life] = max(newest[snapshot.life] ?? .zero, snapshot.sequence)
        }
        return confirmed.filter { $0.sequence < newest[$0.life] ?? .zero }
    }

    /// The order in which snapshots are listed.
    static func isAscending(_ left: SavedSnapshot, _ right: SavedSnapshot) -> Bool {
        (left.store, left.sequence) < (right.store, right.sequence)
    }
}

/// A piece of a snapshot, the unit in which it is saved.
public struct SnapshotPiece: Sendable, Hashable {
    /// The largest piece that a log accepts: 16 MiB. An append may have to wait for one.
    public static let bytesMax = 16 << 20

    /// The snapshot that it is a part of; the same in every piece of it.
    public var snapshot: SavedSnapshot
    /// The offset of its first byte.
    public var offset: UInt64
    /// The bytes, at most ``bytesMax``; empty only if the state is empty.
    public var bytes: Bytes

    /// Makes a piece.
    ///
    /// - Parameters:
    ///   - snapshot: The snapshot that it is a part of.
    ///   - offset: The offset of its first byte.
    ///   - bytes: The bytes.
    public init(snapshot: SavedSnapshot, offset: UInt64, bytes: Bytes) {
        self.snapshot = snapshot
        self.offset = offset
        self.bytes = bytes
    }

    /// Cuts the piece into smaller ones.
    ///
    /// - Parameter bytesMax: The most bytes of each.
    /// - Returns: One piece at least.
    func parts(bytesMax: Int) -> [SnapshotPiece] {
        guard bytes.count > bytesMax else { return [self] }
        return stride(from: 0, to: bytes.count, by: bytesMax).map { start in
            SnapshotPiece(
                snapshot: snapshot, offset: offset + UInt64(start),
                bytes: bytes.dropFirst(start).prefix(bytesMax))
        }
    }

    /// Whether the snapshot is complete with this piece.
    public var isLast: Bool { offset + UInt64(bytes.count) == snapshot.byteCount }

    /// The check that every engine makes before it saves the piece.
    ///
    /// - Parameter last: Where the log ends.
    /// - Throws: `invalidSnapshot`.
    package func validate(endingAt last: SequenceNumber) throws(LogError) {
        let rest = snapshot.byteCount - min(offset, snapshot.byteCount)
        guard snapshot.life > .zero, snapshot.life <= snapshot.sequence,
            snapshot.sequence <= last, snapshot.byteCount <= SavedSnapshot.bytesMax,
            bytes.count <= Self.bytesMax, UInt64(bytes.count) <= rest,
            !bytes.isEmpty || snapshot.byteCount == 0
        else {
            throw LogError(
                .invalidSnapshot,
                "A snapshot of \(snapshot.key) in life \(snapshot.life), \(bytes.count) bytes of "
                    + "\(snapshot.byteCount) from \(offset) on, can't be saved in a log that ends "
                    + "at \(last) and takes \(SavedSnapshot.bytesMax) bytes, \(Self.bytesMax) at "
                    + "a time. Save one within these bounds.")
        }
    }
}

/// The snapshots that a log has, as far as its list of them can be read.
public struct SnapshotList: Sendable, Equatable {
    /// Rows of the list that are damaged.
    public struct Damage: Sendable, Equatable {
        /// The stores that they may belong to; nil if that is unknown, and any store may be concerned.
        public var stores: Set<StoreName>?

        /// Makes a description of damage.
        public init(stores: Set<StoreName>?) {
            self.stores = stores
        }

        /// What was found and what to do, for people.
        public var message: String {
            let names = stores.map { $0.sorted().prefix(8).map(\.description) }
            let more = (stores?.count ?? 0) > 8 ? " and others" : ""
            let concerned = names.map { $0.joined(separator: ", ") + more } ?? "any store"
            return "The list of snapshots is not what was written: a snapshot of \(concerned) may "
                + "be missing from it. Restore the log from a backup."
        }
    }

    /// The complete snapshots that are not above the log's end, ascending by store and number.
    public var intact: [SavedSnapshot]
    /// The damaged rows of the list; nil if the list is intact.
    public var damage: Damage?

    /// Makes a list.
    public init(intact: [SavedSnapshot], damage: Damage? = nil) {
        self.intact = intact
        self.damage = damage
    }
}
