import Conflux
import ConfluxVocabulary
import Foundation

/// Tells a process what its predecessor was doing when it died.
///
/// A reducer that traps ends its process. The next process loads the same stores, reaches the same
/// entry, and dies of it, too. So does every process that hosts the store, for ever (rule 23).
/// Therefore each store records the entry that it is about to apply, in a file that survives the
/// process. The next process that opens the file counts the recorded deaths. After ``crashesMax``
/// deaths in a row at one entry, the store is *poisoned* there: it stops before the entry instead of
/// applying it. Other stores continue.
///
///     lane:    record 16 ─ apply ─ record 17 ─ apply ✕ died
///     opened:  17, once         record … 17 ─ apply ✕ died
///     opened:  17, twice        stop before 17
///
/// The same counts for a migration of the store's state: after two deaths, it fails with an error instead.
///
/// What counts:
///
/// - Any end of the process while an entry is being applied, also by a signal. So one death proves
///   nothing. Two in a row at the same entry count as proof. If a process gets past the entry, the
///   first death no longer counts.
/// - A number within one life of a store in one log, for one program. If another program opens the
///   file, counting begins anew: its reducer may be fixed.
/// - If stores have their own executors, several may be applying when the process dies. The death
///   counts for each of them.
///
/// It is confined to the thread that applies. Lanes write their own words.
package final class CrashJournal {
    /// How many stores may have a place in it at once.
    package static let slotsMax = 4_096
    /// How many times in a row a process may die at one entry before the store stops there.
    package static let crashesMax = 2

    private struct Place {
        var slot: CrashSlot
        weak var record: CrashRecord?
    }

    private let file: CrashJournalFile
    /// By the identity of a store's life.
    private var places: [UInt64: Place] = [:]
    /// Free slots; the last element is the lowest slot.
    private var free: [CrashSlot] = []
    private var warning: String?

    /// Opens or makes a journal, and counts the recorded crashes.
    ///
    /// - Parameters:
    ///   - path: The file. It has one owner at a time.
    ///   - slotCount: How many stores may have a place in it at once.
    ///   - program: Identifies this program.
    /// - Throws: ``NodeError``: `journalUnusable`, `journalInUse`.
    package init(
        at path: String, slotCount: Int = slotsMax, program: UInt64 = presentProgram
    ) throws(NodeError) {
        file = try CrashJournalFile(path, slotCount: slotCount)
        warning = file.warning
        for index in (0..<slotCount).reversed() {
            let slot = file.slot(index)
            if file.program == program { slot.countCrash() } else { slot.take(for: 0) }
            // A lane of an ended node may still write to its store's slot, so the store keeps it.
            if slot.identity == 0 {
                slot.take(for: 0)
                free.append(slot)
            } else {
                places[slot.identity] = Place(slot: slot)
            }
        }
        file.program = program
    }

    /// Makes a journal in memory for simulations, as processes leave it that died of these entries too
    /// often.
    ///
    /// - Parameter deaths: The entries, at most one for each store.
    package init(
        inMemoryAfter deaths: [(
            store: StoreName, life: SequenceNumber, log: LogID, at: SequenceNumber
        )]
    ) {
        file = CrashJournalFile(inMemory: deaths.count + 16)
        free = (deaths.count..<file.slotCount).map { file.slot($0) }
        for (index, death) in deaths.enumerated() {
            let slot = file.slot(index)
            let identity = Self.identity(of: death.store, death.life, death.log)
            slot.take(for: identity)
            for _ in 0..<Self.crashesMax {
                slot.decoding.begin(death.at)
                slot.countCrash()
            }
            places[identity] = Place(slot: slot)
        }
    }

    /// Numbers have a meaning only within one life of a store in one log.
    private static func identity(
        of store: StoreName, _ life: SequenceNumber, _ log: LogID
    ) -> UInt64 {
        // Zero means that the slot is free.
        max(1, Checksum.hash("\(log) \(life) \(store)"))
    }

    /// Identifies the program of this process by the size and the time of its file.
    package static let presentProgram: UInt64 = {
        guard let path = Bundle.main.executablePath,
            let facts = try? FileManager.default.attributesOfItem(atPath: path)
        else { return 1 }
        let time = (facts[.modificationDate] as? Date)?.timeIntervalSince1970
        return Checksum.hash("\(facts[.size] as? NSNumber ?? 0) \(time ?? 0)")
    }()

    /// Takes the warning about the file for the operator; it is given once.
    func takeWarning() -> String? { warning.take() }

    /// The place of a store that begins with a snapshot.
    ///
    /// - Parameters:
    ///   - store: Its name.
    ///   - life: Its life.
    ///   - log: The log of that life.
    ///   - sequence: The snapshot's number. Deaths at or below it no longer count.
    /// - Returns: The record; nil if all slots are in use.
    func record(
        of store: StoreName, life: SequenceNumber, log: LogID, at sequence: SequenceNumber
    ) -> CrashRecord? {
        let identity = Self.identity(of: store, life, log)
        guard let slot = places[identity]?.slot ?? freeSlot() else { return nil }
        if slot.identity != identity { slot.take(for: identity) }
        if case .entry(let entry)? = slot.crashes?.work, entry <= sequence { slot.forgetCrashes() }
        let record = CrashRecord(slot, store: store, file)
        places[identity] = Place(slot: slot, record: record)
        return record
    }

    /// Finds a slot for another store. It may take that of a store that is not hosted and never crashed.
    private func freeSlot() -> CrashSlot? {
        if let slot = free.popLast() { return slot }
        let unused = places.first { $0.value.record == nil && $0.value.slot.crashes == nil }
        guard let (identity, place) = unused else { return nil }
        places[identity] = nil
        return place.slot
    }

    /// Releases the file for another owner. A lane that still works for an ended node may continue to record: its
    /// memory stays mapped.
    func close() {
        file.unlock()
    }

    /// Forgets all deaths after the history was lost: the same numbers may mean other entries from now on.
    func forgetHistory() {
        for place in places.values where place.record != nil { place.slot.forgetCrashes() }
    }
}

/// One hosted store's place in a crash journal. It keeps the journal's file mapped.
// Sendable: immutable; the slot documents who may use what.
final class CrashRecord: Sendable {
    /// The entry that the store must not apply, and why; nil if there is none.
    let poison: (at: SequenceNumber, message: String)?
    /// Whether there is such an entry.
    let isPoisoned: Bool
    /// The schema version from which the state must not be migrated, and why; nil if there is none.
    private let fatalMigration: (from: UInt32, message: String)?
    private let slot: CrashSlot
    private let suspect: SequenceNumber
    private let file: CrashJournalFile

    fileprivate init(_ slot: CrashSlot, store: StoreName, _ file: CrashJournalFile) {
        self.slot = slot
        self.file = file
        var (suspect, poison) = (SequenceNumber.zero, nil as (at: SequenceNumber, message: String)?)
        var fatalMigration: (from: UInt32, message: String)?
        let count = slot.crashes?.count ?? 0
        let isFatal = count >= CrashJournal.crashesMax
        let retry = "To have this program try once more, remove \(file.path) first."
        switch slot.crashes?.work {
        case .entry(let sequence):
            suspect = sequence
            let message = """
                \(store) stopped before entry \(sequence): this program ended \(count) times \
                in a row while it applied that entry. Skip it in every process with \
                `conflux log skip \(sequence)`, or run a program that can apply it, and start this \
                process again. \(retry)
                """
            if isFatal { poison = (sequence, message) }
        case .migration(let version):
            let message = """
                \(store) is not migrated from schema version \(version): this program ended \
                \(count) times in a row while it migrated it. Run a program that can \
                migrate it; conflux upgrade --check tells. \(retry)
                """
            if isFatal { fatalMigration = (version, message) }
        case nil: break
        }
        (self.suspect, self.poison, self.fatalMigration) = (suspect, poison, fatalMigration)
        isPoisoned = poison != nil
    }

    fileprivate func migrating<Result>(
        from version: UInt32, _ body: () throws -> Result
    ) throws -> Result {
        if let fatalMigration, fatalMigration.from == version {
            throw StoreError(.migrationFailed, fatalMigration.message)
        }
        slot.beginMigration(from: version)
        defer { slot.endMigration() }
        return try body()
    }

    /// Records which entry is being decoded. It is valid as long as this object lives.
    var decoding: DecodingMark { slot.decoding }

    /// The mark in which the store's lane records what it commits.
    func commitMark() -> CommitMark {
        CommitMark(word: slot.applying, suspect: suspect) { [self] in slot.forgetCrashes() }
    }
}

extension CrashRecord? {
    /// Migrates a state of the store, on any thread, and records that meanwhile, if there is a record.
    ///
    /// - Parameters:
    ///   - version: The state's schema version.
    ///   - body: Migrates it.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; ``StoreError`` if processes died of it.
    func migrating<Result>(from version: UInt32, _ body: () throws -> Result) throws -> Result {
        try self?.migrating(from: version, body) ?? body()
    }
}
