import Conflux
import ConfluxVocabulary
import Foundation

/// What a process was doing when it died, for the process that comes after it.
///
/// A reducer that traps ends its process. The next process loads the same stores, comes to the same
/// entry, and dies of it, too. So would every process that hosts the store, for ever (rule 23).
/// Therefore each store notes which entry it is about to apply, in a file that survives the
/// process. A process that opens the file finds the notes of its predecessor, and counts the
/// deaths. After ``crashesMax`` deaths in a row at one entry, the store is *poisoned* there: it
/// stops before the entry instead of applying it. Other stores continue.
///
///     lane:    note 16 ─ apply ─ note 17 ─ apply ✕ died
///     opened:  17, once       note … 17 ─ apply ✕ died
///     opened:  17, twice      stop before 17
///
/// What counts:
///
/// - Any end of the process while it works on an entry, even if somebody killed the process. So one
///   death proves nothing, but two in a row at the same entry are taken as proof. A process that
///   gets past the entry takes the first death back.
/// - A number within one life of a store in one log, for one program. Another program that opens
///   the file begins anew: it may be the program in which the reducer is fixed.
/// - If stores have executors of their own, several may be at work when the process dies. The death
///   counts for each of them, and the message says so.
///
/// Confined to the thread that applies, except for what lanes note, in words of their own.
package final class CrashJournal {
    /// How many stores have a place in the journal at once.
    package static let slotsMax = 4_096
    /// How many times in a row a process may die at one entry before the store stops there.
    package static let crashesMax = 2

    private struct Place {
        var index: Int
        weak var record: CrashRecord?
    }

    private let file: CrashJournalFile
    private var places: [StoreName: Place] = [:]
    /// Free slots; the last element is the lowest slot.
    private var free: [Int] = []
    private var warning: String?

    /// Opens a journal, or makes one, and counts the crashes that it records.
    ///
    /// - Parameters:
    ///   - path: The file. It has one owner at a time.
    ///   - slotCount: How many stores have a place in the journal at once.
    ///   - program: Identifies this program.
    /// - Throws: ``NodeError``: `journalUnusable`, `journalInUse`.
    package init(
        at path: String, slotCount: Int = slotsMax, program: UInt64 = presentProgram
    ) throws(NodeError) {
        file = try CrashJournalFile(path, slotCount: slotCount)
        warning = file.warning
        open(slotCount, program)
    }

    /// Makes a journal in memory, as if processes had died of these entries too often: for
    /// simulations.
    ///
    /// - Parameter deaths: The entries, at most one per store.
    package init(
        inMemoryAfter deaths: [(
            store: StoreName, life: SequenceNumber, log: LogID, at: SequenceNumber
        )]
    ) {
        let slotCount = deaths.count + 16
        file = CrashJournalFile(inMemory: slotCount)
        for (index, death) in deaths.enumerated() {
            let slot = file.slot(index)
            slot.take(
                for: CrashSlot.Identity(store: death.store, life: death.life, log: death.log))
            for _ in 0..<Self.crashesMax {
                slot.decoding.begin(death.at)
                slot.countCrash(company: 1)
            }
        }
        open(slotCount, file.program)
    }

    private func open(_ slotCount: Int, _ program: UInt64) {
        var used: [(index: Int, slot: CrashSlot)] = []
        for index in (0..<slotCount).reversed() {
            let slot = file.slot(index)
            guard case .used(let identity) = slot.content, places[identity.store] == nil else {
                slot.clear()
                free.append(index)
                continue
            }
            places[identity.store] = Place(index: index)
            used.append((index, slot))
        }
        if file.program == program {
            let company = used.count { $0.slot.interrupted != nil }
            for (_, slot) in used { slot.countCrash(company: company) }
        } else {
            for (_, slot) in used {
                slot.forgetWork()
                slot.forgetCrashes()
            }
            file.program = program
        }
    }

    /// Identifies this process's program: a hash of the size and the modification time of its file.
    package static let presentProgram: UInt64 = {
        var hasher = DigestHasher()
        if let path = Bundle.main.executablePath,
            let facts = try? FileManager.default.attributesOfItem(atPath: path)
        {
            let size = (facts[.size] as? NSNumber)?.uint64Value ?? 0
            let time = (facts[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0
            withUnsafeBytes(of: (size, time.bitPattern)) { hasher.update($0) }
        }
        return hasher.finish().rawValue
    }()

    /// What the operator should know about the file itself. It is returned once.
    func takeWarning() -> String? { warning.take() }

    /// The place of a store that begins with a snapshot.
    ///
    /// - Parameters:
    ///   - store: Its name.
    ///   - life: Its life.
    ///   - log: The log of that life.
    ///   - sequence: The snapshot's number. Deaths at or below it are over.
    /// - Returns: nil if every slot is taken.
    func record(
        of store: StoreName, life: SequenceNumber, log: LogID, at sequence: SequenceNumber
    ) -> CrashRecord? {
        guard let index = places[store]?.index ?? freeIndex() else { return nil }
        let slot = file.slot(index)
        let identity = CrashSlot.Identity(store: store, life: life, log: log)
        if slot.content != .used(identity) { slot.take(for: identity) }
        if let crashes = slot.crashes, crashes.at <= sequence { slot.forgetCrashes() }
        let record = CrashRecord(slot, store: store, file)
        places[store] = Place(index: index, record: record)
        return record
    }

    /// Finds a slot for another store. If none is free, takes the slot of a store that is not
    /// hosted and never crashed.
    private func freeIndex() -> Int? {
        if let index = free.popLast() { return index }
        let unused = places.first {
            $0.value.record == nil && file.slot($0.value.index).crashes == nil
        }
        guard let (store, place) = unused else { return nil }
        places[store] = nil
        return place.index
    }

    /// Lets another owner have the file. A lane that still works for a node that has ended may
    /// continue to note: the memory stays mapped.
    func close() {
        file.unlock()
    }

    /// The history is lost: from now on, the same numbers may name other entries.
    func forgetHistory() {
        for place in places.values where place.record != nil {
            file.slot(place.index).forgetCrashes()
        }
    }
}

/// One hosted store's place in a crash journal. It keeps the journal's file mapped.
// Sendable: immutable. The slot says who may access what.
final class CrashRecord: Sendable {
    /// The entry that the store must not apply, and why; nil if there is none.
    let poison: (at: SequenceNumber, message: String)?
    /// Whether there is such an entry.
    let isPoisoned: Bool
    private let slot: CrashSlot
    private let suspect: SequenceNumber
    private let file: CrashJournalFile

    fileprivate init(_ slot: CrashSlot, store: StoreName, _ file: CrashJournalFile) {
        self.slot = slot
        self.file = file
        let crashes = slot.crashes
        suspect = crashes?.at ?? .zero
        isPoisoned = crashes?.isPoison ?? false
        poison = crashes.flatMap { crashes in
            crashes.isPoison ? (crashes.at, Self.message(store, crashes, file.path)) : nil
        }
    }

    private static func message(
        _ store: StoreName, _ crashes: CrashSlot.Crashes, _ path: String
    ) -> String {
        let company =
            crashes.company < 2
            ? ""
            : """
             Other stores were applying entries when it ended last (\(crashes.company - 1)), and \
            one of those may have been the cause.
            """
        return """
            \(store) stopped before entry \(crashes.at): this program ended \(crashes.count) times \
            in a row while it applied that entry.\(company) Get everyone past it with \
            `conflux log skip \(crashes.at)`, or run a program that can apply it, and start this \
            process again. To have this program try once more, remove \(path) first.
            """
    }

    /// Records which entry is being decoded. It is valid while this object lives.
    var decoding: DecodingMark { slot.decoding }

    /// The mark in which the store's lane notes what it commits.
    func commitMark() -> CommitMark {
        CommitMark(word: slot.applying, suspect: suspect) { [self] in slot.forgetCrashes() }
    }
}
