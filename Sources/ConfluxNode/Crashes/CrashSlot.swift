import Conflux
import ConfluxVocabulary
import Synchronization

/// One store's part of a crash journal: eight words of the mapped file, two of them unused.
///
/// Words have the machine's byte order: the file is read on the machine that wrote it. The next process reads them,
/// however this one ends. Each of them is stored on its own.
// Sendable: a place in mapped memory, whose words are atomic.
struct CrashSlot: @unchecked Sendable {
    static let bytes = 64

    private enum Word: Int {
        /// What identifies the store's life; 0 while the slot is free.
        case identity
        /// The entry that is being applied, the one that is being decoded, and the migration under way; 0 for none.
        case applying, decoding, migrating
        /// What a process died of last, and how often in a row; 0 for nothing.
        case crashWork, crashCount
    }

    private let words: UnsafePointer<Atomic<UInt64>>

    init(_ base: UnsafeRawPointer) {
        words = base.assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    private subscript(word: Word) -> UInt64 {
        get { (words + word.rawValue).pointee.load(ordering: .relaxed) }
        nonmutating set { (words + word.rawValue).pointee.store(newValue, ordering: .releasing) }
    }

    /// What identifies the store's life; 0 while the slot is free.
    var identity: UInt64 { self[.identity] }

    /// Gives the slot to a store without any deaths. With the identity 0, it is free.
    func take(for identity: UInt64) {
        // The slot is free in between, so that a crash in here leaves no mixed slot.
        self[.identity] = 0
        for word in [Word.applying, .decoding, .migrating] { self[word] = 0 }
        forgetCrashes()
        self[.identity] = identity
    }

    // MARK: Work in progress

    /// The word in which a lane records what it commits.
    var applying: UnsafePointer<Atomic<UInt64>> { words + Word.applying.rawValue }

    /// The mark that records what is being decoded.
    var decoding: DecodingMark { DecodingMark(word: words + Word.decoding.rawValue) }

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
    var crashes: (work: Work, count: Int)? {
        Work(rawValue: self[.crashWork]).map { ($0, Int(clamping: self[.crashCount])) }
    }

    /// Counts the crash that interrupted some work, and forgets the interruption.
    func countCrash() {
        let works = [Word.migrating, .applying, .decoding].compactMap { Work(rawValue: self[$0]) }
        guard let interrupted = works.first else { return }
        defer { for word in [Word.applying, .decoding, .migrating] { self[word] = 0 } }
        let former = crashes
        if former?.work == interrupted {
            self[.crashCount] = self[.crashCount] &+ 1
            return
        }
        // A store can't be past the entry that poisons it, so this payload was decoded for other stores.
        if let former, former.count >= CrashJournal.crashesMax,
            case .entry(let poison) = former.work, case .entry(let sequence) = interrupted,
            poison < sequence
        {
            return
        }
        self[.crashWork] = interrupted.rawValue
        self[.crashCount] = 1
    }

    func forgetCrashes() {
        self[.crashWork] = 0
        self[.crashCount] = 0
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
