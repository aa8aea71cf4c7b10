import ConfluxVocabulary
import Foundation
import Testing

@testable import Conflux
@testable import ConfluxNode

/// A crash journal in a new folder, and processes that die: their journals are released while an entry
/// is noted.
final class JournalSetup {
    let folder: String
    var path: String { folder + "/journal" }
    let store = StoreName(state: Name("tally")!, instance: .shared)
    let log = LogID(high: 1, low: 1)
    let life = SequenceNumber(2)

    init() throws {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(Identifier.random())")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        folder = url.path
    }

    deinit {
        try? FileManager.default.removeItem(atPath: folder)
    }

    func open(slotCount: Int = CrashJournal.slotsMax, program: UInt64 = 1) throws -> CrashJournal {
        try CrashJournal(at: path, slotCount: slotCount, program: program)
    }

    func record(
        in journal: CrashJournal, of store: StoreName? = nil, life: SequenceNumber? = nil,
        log: LogID? = nil, at sequence: UInt64 = 2
    ) throws -> CrashRecord {
        try #require(
            journal.record(
                of: store ?? self.store, life: life ?? self.life, log: log ?? self.log,
                at: SequenceNumber(sequence)))
    }

    /// Imitates a process that dies while it applies or decodes an entry for each of these stores.
    func die(
        at sequence: UInt64, of stores: [StoreName]? = nil, isDecoding: Bool = false,
        program: UInt64 = 1
    ) throws {
        let journal = try open(program: program)
        for store in stores ?? [store] {
            let record = try record(in: journal, of: store)
            if isDecoding {
                record.decoding.begin(SequenceNumber(sequence))
            } else {
                record.commitMark().begin(SequenceNumber(sequence))
            }
        }
    }

    /// The entry at which the store is poisoned, as the next process sees it.
    func poison(of store: StoreName? = nil) throws -> UInt64? {
        try record(in: open(), of: store).poison?.at.rawValue
    }

    var bytes: [UInt8] {
        get throws { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }
    }

    func write(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }
}
