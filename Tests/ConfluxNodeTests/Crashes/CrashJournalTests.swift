import Foundation
import Testing

@testable import Conflux
@testable import ConfluxNode

/// What a process learns about former processes that died.
struct CrashJournalTests {
    private let setup: JournalSetup
    private let other = StoreName(state: Name("tally")!, instance: Name("other")!)

    init() throws {
        setup = try JournalSetup()
    }

    @Test(arguments: [false, true])
    func `a store is poisoned at an entry that killed two processes in a row`(
        isDecoding: Bool
    ) throws {
        try setup.die(at: 7, isDecoding: isDecoding)
        #expect(try setup.poison() == nil)
        try setup.die(at: 7, isDecoding: isDecoding)
        #expect(try setup.poison() == 7)
        // It stays poisoned for processes that stop there.
        #expect(try setup.poison() == 7)
        #expect(try setup.poison(of: other) == nil)
    }

    /// Imitates processes that die while they migrate a state of the first version: the journal stays as it was then.
    private func dieMigrating(_ count: Int = 2, applying sequence: UInt64? = nil) throws {
        for _ in 0..<count {
            var bytes: [UInt8] = []
            do {
                let record: CrashRecord? = try setup.record(in: setup.open())
                if let sequence { record?.commitMark().begin(SequenceNumber(sequence)) }
                bytes = try record.migrating(from: 1) { try setup.bytes }
            }
            try setup.write(bytes)
        }
    }

    private func migrate(from version: UInt32, in journal: CrashJournal) throws -> Int {
        let record: CrashRecord? = try setup.record(in: journal, at: 90)
        return try record.migrating(from: version) { 7 }
    }

    @Test func `a migration that killed two processes in a row is an error`() throws {
        try dieMigrating()
        let error = #expect(throws: StoreError.self) { try migrate(from: 1, in: setup.open()) }
        #expect(error?.code == .migrationFailed)
        #expect(
            error?.message == """
                tally/shared is not migrated from schema version 1: this program ended 2 times in a row while \
                it migrated it. Run a program that can migrate it; conflux upgrade --check tells. To have this \
                program try once more, remove \(setup.path) first.
                """)
        // No entry is to blame.
        #expect(try setup.poison() == nil)
        // A state of another version is another matter, and so is another program.
        #expect(try migrate(from: 2, in: setup.open()) == 7)
        try dieMigrating()
        #expect(try migrate(from: 1, in: setup.open(program: 2)) == 7)
    }

    @Test func `a migration that ends cancels the deaths, whatever its outcome`() throws {
        struct Refused: Error {}
        try dieMigrating(1)
        do {
            let record: CrashRecord? = try setup.record(in: setup.open())
            #expect(throws: Refused.self) {
                try record.migrating(from: 1) { throw Refused() }
            }
        }
        try dieMigrating(1)
        #expect(try migrate(from: 1, in: setup.open()) == 7)
        #expect(try setup.poison() == nil)
    }

    @Test func `a death while a state is migrated is not one of the entry that is applied`() throws
    {
        try dieMigrating(applying: 7)
        #expect(try setup.poison() == nil)
        #expect(throws: StoreError.self) { try migrate(from: 1, in: setup.open()) }
    }

    @Test func `the message names store, entry, and what to do`() throws {
        try setup.die(at: 7)
        try setup.die(at: 7)
        let message = try setup.record(in: setup.open()).poison?.message
        #expect(
            message == """
                tally/shared stopped before entry 7: this program ended 2 times in a row while it \
                applied that entry. Skip it in every process with `conflux log skip 7`, or run a \
                program that can apply it, and start this process again. To have this program try \
                once more, remove \(setup.path) first.
                """)
    }

    @Test func `crashes at different entries poison nothing`() throws {
        for sequence in [7, 8, 7, 8] as [UInt64] {
            try setup.die(at: sequence)
            #expect(try setup.poison() == nil)
        }
    }

    @Test func `entries decoded for other stores do not hide where a store is poisoned`() throws {
        try setup.die(at: 7)
        try setup.die(at: 7)
        try setup.die(at: 8, isDecoding: true)
        #expect(try setup.poison() == 7)
    }

    @Test func `a process that ends between entries is not counted as a crash`() throws {
        for _ in 1...3 {
            let mark = try setup.record(in: setup.open()).commitMark()
            mark.begin(SequenceNumber(7))
            mark.end(at: SequenceNumber(7))
        }
        #expect(try setup.poison() == nil)
    }

    @Test func `a process that gets past the entry cancels the death`() throws {
        try setup.die(at: 7)
        do {
            let mark = try setup.record(in: setup.open()).commitMark()
            mark.begin(SequenceNumber(6))
            mark.end(at: SequenceNumber(6))
        }
        // This process doesn't get that far.
        try setup.die(at: 7)
        #expect(try setup.poison() == 7)
        do {
            let mark = try setup.record(in: setup.open()).commitMark()
            mark.begin(SequenceNumber(8))
            mark.end(at: SequenceNumber(8))
        }
        #expect(try setup.poison() == nil)
        try setup.die(at: 7)
        #expect(try setup.poison() == nil)
    }

    @Test func `a snapshot that contains the entry cancels the death`() throws {
        try setup.die(at: 7)
        try setup.die(at: 7)
        #expect(try setup.record(in: setup.open(), at: 6).poison != nil)
        #expect(try setup.record(in: setup.open(), at: 7).poison == nil)
        #expect(try setup.poison() == nil)
    }

    @Test func `another life, and another log, have other numbers`() throws {
        for isOtherLog in [false, true] {
            try setup.die(at: 7)
            try setup.die(at: 7)
            let record = try setup.record(
                in: setup.open(), life: isOtherLog ? setup.life : SequenceNumber(5),
                log: isOtherLog ? LogID(high: 1, low: 2) : setup.log)
            #expect(record.poison == nil)
        }
    }

    @Test func `a lost history removes the deaths counted in it`() throws {
        try setup.die(at: 7)
        try setup.die(at: 7)
        let journal = try setup.open()
        let record = try setup.record(in: journal)
        #expect(record.poison != nil)
        journal.forgetHistory()
        #expect(try setup.record(in: journal).poison == nil)
    }

    @Test func `another program may be able to apply the entry`() throws {
        try setup.die(at: 7)
        try setup.die(at: 7)
        #expect(try setup.record(in: setup.open(program: 2)).poison == nil)
        try setup.die(at: 7, program: 2)
        #expect(try setup.record(in: setup.open(program: 2)).poison == nil)
        try setup.die(at: 7, program: 2)
        #expect(try setup.record(in: setup.open(program: 2)).poison != nil)
        #expect(CrashJournal.presentProgram != 0)
    }

    @Test func `a crash with several stores in work counts for each`() throws {
        try setup.die(at: 7, of: [setup.store, other])
        try setup.die(at: 7, of: [setup.store, other])
        #expect(try setup.poison() == 7)
        #expect(try setup.poison(of: other) == 7)
    }

    // MARK: Bounds

    @Test func `a bounded number of stores has a place, and those that died keep theirs`() throws {
        func name(_ number: Int) throws -> StoreName {
            try #require(StoreName("tally/\(number)"))
        }
        try setup.die(at: 7)
        let journal = try setup.open()
        var records: [CrashRecord] = []
        for number in 1..<CrashJournal.slotsMax {
            records.append(try setup.record(in: journal, of: name(number)))
        }
        let late = try name(CrashJournal.slotsMax)
        func lateRecord() -> CrashRecord? {
            journal.record(
                of: late, life: setup.life, log: setup.log, at: SequenceNumber(2))
        }
        // The first store is not hosted now, but can't be replaced yet.
        #expect(lateRecord() == nil)
        records.removeLast()
        #expect(lateRecord() != nil)
        #expect(try setup.bytes.count == (CrashJournal.slotsMax + 1) * 64)
    }

    @Test func `a store that is opened again keeps its place`() throws {
        let journal = try setup.open(slotCount: 1)
        for _ in 1...3 { _ = try setup.record(in: journal) }
    }
}
