import Conflux
import ConfluxVocabulary
import Synchronization

/// One store's part of a crash journal: 256 bytes of the mapped file.
///
///       0  the number of the entry that is being applied; 0 while none is
///       8  the number of the entry that is being decoded; 0 while none is
///      16  at what a process died last: the number of an entry, or what stands at 248; 0 for nothing
///      24  how often in a row it died there
///      32  how many stores were at work when it died there, this one included
///      40  the log's id (two words)
///      56  the store's life
///      64  the digest of what stands from 40 to 64, and of the name; 0 while the slot is free
///      72  the length of the store's name
///      80  the name
///     248  the schema version of the state that is being migrated, with the highest bit set; 0 while none is
///
/// Words have the machine's byte order: the file is read on the machine that wrote it. The next process
/// reads the first five and the last, however this one ends. Each of them is stored on its own.
// Sendable: a place in mapped memory. Words that several threads use are atomic. The identity is
// written only while nobody has the slot.
struct CrashSlot: @unchecked Sendable {
    static let bytes = 256

    private enum Word: Int {
        case applying = 0
        case decoding = 8
        case crashNumber = 16
        case crashCount = 24
        case companyCount = 32
        case logHigh = 40
        case logLow = 48
        case life = 56
        case digest = 64
        case nameLength = 72
        case migrating = 248
    }

    private static let identityOffset = 40
    private static let nameOffset = 80
    private static let nameBytesMax = Word.migrating.rawValue - nameOffset

    private let base: UnsafeMutableRawPointer

    init(_ base: UnsafeMutableRawPointer) {
        self.base = base
    }

    private func atomic(_ word: Word) -> UnsafePointer<Atomic<UInt64>> {
        UnsafePointer((base + word.rawValue).assumingMemoryBound(to: Atomic<UInt64>.self))
    }

    private subscript(word: Word) -> UInt64 {
        get { atomic(word).pointee.load(ordering: .relaxed) }
        nonmutating set { atomic(word).pointee.store(newValue, ordering: .releasing) }
    }

    // MARK: Work in progress

    /// The word in which a lane records what it commits.
    var applying: UnsafePointer<Atomic<UInt64>> { atomic(.applying) }

    /// The mark that records what is being decoded.
    var decoding: DecodingMark { DecodingMark(word: atomic(.decoding)) }

    /// Something that a process may die of.
    enum Work: RawRepresentable, Hashable {
        /// An entry is applied or decoded.
        case entry(SequenceNumber)
        /// A state of this schema version is migrated.
        case migration(from: UInt32)

        private static let mark: UInt64 = 1 << 63

        init?(rawValue: UInt64) {
            guard rawValue != 0 else { return nil }
            self =
                rawValue & Self.mark == 0
                ? .entry(SequenceNumber(rawValue))
                : .migration(from: UInt32(truncatingIfNeeded: rawValue))
        }

        var rawValue: UInt64 {
            switch self {
            case .entry(let sequence): sequence.rawValue
            case .migration(let version): Self.mark | UInt64(version)
            }
        }
    }

    /// What was under way when the process died; nil if nothing was.
    var interrupted: Work? {
        Work(rawValue: self[.migrating]) ?? Work(rawValue: self[.applying])
            ?? Work(rawValue: self[.decoding])
    }

    func beginMigration(from version: UInt32) {
        self[.migrating] = Work.migration(from: version).rawValue
    }

    /// The migration came to an end, whatever its outcome: it is not what processes died of.
    func endMigration() {
        self[.migrating] = 0
        if case .migration? = crashes?.work { forgetCrashes() }
    }

    // MARK: Crashes

    /// The deaths in a row of the same work.
    struct Crashes: Equatable {
        var work: Work
        var count: Int
        /// How many stores were at work at the last death, this one included.
        var company: Int

        var isPoison: Bool { count >= CrashJournal.crashesMax }
    }

    var crashes: Crashes? {
        Work(rawValue: self[.crashNumber]).map {
            Crashes(
                work: $0, count: Int(clamping: self[.crashCount]),
                company: Int(clamping: self[.companyCount]))
        }
    }

    /// Counts the crash that interrupted some work, and forgets the interruption.
    func countCrash(company: Int) {
        guard let interrupted else { return }
        defer { forgetWork() }
        let former = crashes
        if former?.work == interrupted {
            self[.crashCount] = self[.crashCount] &+ 1
        } else {
            // A store can't be past the entry that poisons it, so this payload was decoded for other stores.
            if let former, former.isPoison, case .entry(let poison) = former.work,
                case .entry(let sequence) = interrupted, poison < sequence
            {
                return
            }
            self[.crashNumber] = interrupted.rawValue
            self[.crashCount] = 1
        }
        self[.companyCount] = UInt64(company)
    }

    func forgetWork() {
        self[.applying] = 0
        self[.decoding] = 0
        self[.migrating] = 0
    }

    func forgetCrashes() {
        self[.crashNumber] = 0
        self[.crashCount] = 0
        self[.companyCount] = 0
    }

    // MARK: Identity

    /// The identity of a slot: numbers have a meaning only within one life of a store in one log.
    struct Identity: Hashable {
        var store: StoreName
        var life: SequenceNumber
        var log: LogID
    }

    /// The content of a slot.
    enum Content: Equatable {
        case free
        case used(Identity)
        case damaged
    }

    var content: Content {
        let digest = self[.digest]
        guard digest != 0 else { return .free }
        let length = self[.nameLength]
        guard length <= Self.nameBytesMax, digest == digestOfIdentity(nameLength: Int(length)),
            let store = StoreName(name(length: Int(length)))
        else { return .damaged }
        return .used(
            Identity(
                store: store, life: SequenceNumber(self[.life]),
                log: LogID(high: self[.logHigh], low: self[.logLow])))
    }

    /// Gives the slot to a store without any deaths.
    func take(for identity: Identity) {
        // The slot is free in between, so that a crash in here leaves no mixed slot.
        self[.digest] = 0
        forgetWork()
        forgetCrashes()
        self[.logHigh] = identity.log.high
        self[.logLow] = identity.log.low
        self[.life] = identity.life.rawValue
        // A store's name has two parts of at most 64 bytes, so it fits.
        let name = Array(identity.store.description.utf8.prefix(Self.nameBytesMax))
        self[.nameLength] = UInt64(name.count)
        (base + Self.nameOffset).copyMemory(from: name, byteCount: name.count)
        self[.digest] = digestOfIdentity(nameLength: name.count)
    }

    /// Makes the slot free.
    func clear() {
        self[.digest] = 0
        forgetWork()
        forgetCrashes()
    }

    /// Not a store's name if the bytes are damaged.
    private func name(length: Int) -> String {
        (try? String(
            utf8: UnsafeRawBufferPointer(start: base + Self.nameOffset, count: length))) ?? ""
    }

    private func digestOfIdentity(nameLength: Int) -> UInt64 {
        var hasher = ChecksumHasher()
        hasher.update(
            UnsafeRawBufferPointer(
                start: base + Self.identityOffset, count: Word.digest.rawValue - Self.identityOffset
            ))
        hasher.update(UnsafeRawBufferPointer(start: base + Self.nameOffset, count: nameLength))
        // Zero means that the slot is free.
        return max(1, hasher.finish())
    }
}

/// Records which entry's payload is being decoded for a store. Decoding runs user code, too.
// Sendable: the word is atomic, and the record that hands out the mark keeps the memory.
struct DecodingMark: @unchecked Sendable {
    fileprivate let word: UnsafePointer<Atomic<UInt64>>

    /// Records that the payload of this entry is about to be decoded. The store has a memory ordering, as in
    /// `CommitMark`.
    @inline(__always)
    func begin(_ sequence: SequenceNumber) {
        word.pointee.store(sequence.rawValue, ordering: .releasing)
    }

    /// Records that everything is decoded.
    func end() {
        word.pointee.store(0, ordering: .releasing)
    }
}
