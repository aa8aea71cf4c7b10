import Foundation
import Testing

@testable import Conflux
@testable import ConfluxNode

/// What may be in the place of the journal's file.
struct CrashJournalFileTests {
    private let setup: JournalSetup

    init() throws {
        setup = try JournalSetup()
    }

    private func failure(at path: String) -> NodeError? {
        #expect(throws: NodeError.self) { try CrashJournal(at: path, program: 1) }
    }

    @Test func `a journal has one owner`() throws {
        let journal = try setup.open()
        let failure = failure(at: setup.path)
        #expect(failure?.code == .journalInUse)
        #expect(failure?.message.contains("give this one another file") == true)
        withExtendedLifetime(journal) {}
    }

    @Test func `a closed journal can have another owner, even if the former one still writes`()
        throws
    {
        let journal = try setup.open()
        let mark = try setup.record(in: journal).commitMark()
        journal.close()
        let next = try setup.open()
        #expect(failure(at: setup.path)?.code == .journalInUse)
        mark.begin(SequenceNumber(7))
        mark.end(at: SequenceNumber(7))
        withExtendedLifetime(next) {}
    }

    @Test func `a file that can't be made is an error that says what to do`() throws {
        let pipe = setup.folder + "/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        let paths = ["", "a\0b", setup.folder, setup.folder + "/none/journal", pipe]
        for path in paths {
            let failure = failure(at: path)
            #expect(failure?.code == .journalUnusable)
            #expect(failure?.message.contains("Give") == true)
        }
    }

    @Test func `a file of another kind is left unchanged`() throws {
        let text = Array("name,amount\nalpha,5\n".utf8)
        try setup.write(text)
        let failure = failure(at: setup.path)
        #expect(failure?.code == .journalUnusable)
        #expect(failure?.message.contains("another kind of file") == true)
        #expect(try setup.bytes == text)
    }

    @Test func `an empty file, and one that was just being made, become a journal`() throws {
        for count in [0, 1, 64, 10_000] {
            try setup.write([UInt8](repeating: 0, count: count))
            let journal = try setup.open()
            #expect(journal.takeWarning() == nil)
        }
    }

    /// Changes that damage a journal or give it another version, and the words in the report.
    static let damages: [(String, @Sendable (inout [UInt8]) -> Void)] = [
        ("its format has version 1", { $0[8] = 1 }),
        ("it was damaged", { $0[17] ^= 1 }),
        ("it was damaged", { $0.removeLast($0.count - 5_000) }),
        ("it was damaged", { $0 += [0] }),
    ]

    @Test(arguments: damages.indices)
    func `a damaged journal begins anew, and that is reported`(index: Int) throws {
        let (words, damage) = Self.damages[index]
        for _ in 1...2 { try setup.die(at: 7) }
        var bytes = try setup.bytes
        damage(&bytes)
        try setup.write(bytes)
        let journal = try setup.open()
        let warning = try #require(journal.takeWarning())
        #expect(warning.contains("begins anew, since \(words)."), "\(warning)")
        #expect(journal.takeWarning() == nil)
        #expect(try setup.record(in: journal).poison == nil)
    }

    @Test func `a file of any bytes is a journal, begins anew, or is left alone`() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SplitMix64(seed: seed)
        try setup.die(at: 7)
        let whole = try setup.bytes
        for round in 1...200 {
            var bytes = whole
            // Only bytes that are used: the header and the first slot.
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<128, using: &random)] = UInt8.random(
                    in: 0...255, using: &random)
            }
            try setup.write(bytes)
            do {
                let journal = try setup.open()
                _ = try setup.record(in: journal).commitMark().begin(SequenceNumber(9))
            } catch let error as NodeError {
                #expect(error.code == .journalUnusable, "seed \(seed), round \(round)")
                #expect(try setup.bytes == bytes, "seed \(seed), round \(round)")
            }
        }
    }
}
