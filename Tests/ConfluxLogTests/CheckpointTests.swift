import CSQLite
import ConfluxLog
import ConfluxVocabulary
import Testing

/// Checkpoints in every engine.
@Suite struct CheckpointTests {
    private func make(_ engine: Engine) throws -> (any ActionLog, TemporaryFolder) {
        let folder = TemporaryFolder()
        return (try engine.make(folder), folder)
    }

    @Test(arguments: Engine.allCases)
    func `a checkpoint is found at its number and above`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        #expect(try log.checkpoint(through: log.last) == nil)
        let saved = SavedCheckpoint.sample(4)
        try log.save(saved, pieceBytes: 7)
        #expect(try log.checkpoint(through: SequenceNumber(3)) == nil)
        for number in [4, 5, 20] as [UInt64] {
            #expect(try log.checkpoint(through: SequenceNumber(number)) == saved)
        }
        #expect(try log.readAll().count == 10)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `the last two are kept`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        for number in [2, 6, 10, 14] as [UInt64] { try log.save(.sample(number)) }
        #expect(try log.checkpoint(through: log.last) == .sample(14))
        #expect(try log.checkpoint(through: SequenceNumber(13)) == .sample(10))
        #expect(try log.checkpoint(through: SequenceNumber(9)) == nil)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `an unfinished checkpoint does not count, and the next one discards it`(_ engine: Engine)
        throws
    {
        let (log, folder) = try make(engine)
        try log.save(.sample(4))
        for piece in SavedCheckpoint.sample(8).pieces(of: 7).dropLast() { try log.save(piece) }
        #expect(try log.checkpoint(through: log.last) == .sample(4))
        try log.save(.sample(12), pieceBytes: 9)
        #expect(try log.checkpoint(through: SequenceNumber(11)) == .sample(4))
        #expect(try log.checkpoint(through: log.last) == .sample(12))
        // A checkpoint may be replaced, and may be empty.
        try log.save(SavedCheckpoint(sequence: SequenceNumber(12), bytes: []))
        #expect(try log.checkpoint(through: log.last)?.bytes.isEmpty == true)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `pieces out of order and a checkpoint beyond the log's end are refused`(_ engine: Engine)
        throws
    {
        let (log, folder) = try make(engine)
        let pieces = SavedCheckpoint.sample(4).pieces(of: 7)
        #expect(code { try log.save(pieces[1]) } == .invalidCheckpoint)
        try log.save(pieces[0])
        #expect(code { try log.save(pieces[2]) } == .invalidCheckpoint)
        #expect(
            code { try log.save(SavedCheckpoint.sample(6).pieces(of: 7)[1]) } == .invalidCheckpoint)
        #expect(code { try log.save(.sample(21)) } == .invalidCheckpoint)
        #expect(code { try log.save(.sample(0)) } == .invalidCheckpoint)
        #expect(try log.checkpoint(through: log.last) == nil)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `a reader sees what was appended and saved, up to the number it names`(_ engine: Engine)
        throws
    {
        let (log, folder) = try make(engine)
        let reader = try log.makeReader()
        try log.append(.sample(21...25))
        try log.save(.sample(8))
        let read = try reader.read(
            from: SequenceNumber(9), through: SequenceNumber(21), limitBytes: .max)
        #expect(read == Array(try log.readAll().dropFirst(4)))
        let some = try reader.read(
            from: SequenceNumber(9), through: SequenceNumber(12), limitBytes: .max)
        #expect(some.map(\.last) == [SequenceNumber(10), SequenceNumber(12)])
        #expect(try reader.checkpoint(through: SequenceNumber(25)) == .sample(8))
        reader.close()
        #expect(code { _ = try reader.checkpoint(through: SequenceNumber(1)) } == .closed)
        log.close()
        #expect(code { try log.save(.sample(4)) } == .closed)
        #expect(code { _ = try log.makeReader() } == .closed)
        withExtendedLifetime(folder) {}
    }

    @Test func `a large checkpoint is split into pieces that add up to it`() {
        let checkpoint = SavedCheckpoint.sample(4, bytes: 1_000)
        for size in [1, 7, 999, 1_000, 1_001] {
            let pieces = checkpoint.pieces(of: size)
            #expect(Array(pieces.map(\.bytes).joined()) == Array(checkpoint.bytes))
            #expect(pieces.allSatisfy { $0.bytes.count <= size && $0.count == pieces.count })
            #expect(pieces.map(\.isLast).firstIndex(of: true) == pieces.count - 1)
        }
    }
}

/// Checkpoints, as only the log on disk has them.
@Suite struct SQLiteCheckpointTests {
    private let folder = TemporaryFolder()

    private func open() throws -> SQLiteLog {
        try SQLiteLog(directory: folder.path, settings: .small())
    }

    @Test func `a checkpoint is still there when the log is opened again`() throws {
        let log = try open()
        try log.fill(3)
        try log.save(.sample(6), pieceBytes: 5)
        log.close()
        #expect(try open().checkpoint(through: SequenceNumber(6)) == .sample(6))
    }

    @Test func `a log from before checkpoints existed gets them`() throws {
        let log = try open()
        let commits = try log.fill(3)
        log.close()
        try folder.run("DROP TABLE checkpoints")
        let again = try open()
        #expect(try again.readAll() == commits)
        #expect(try again.checkpoint(through: SequenceNumber(6)) == nil)
        _ = try again.claim()
        try again.save(.sample(6))
        #expect(try again.checkpoint(through: SequenceNumber(6)) == .sample(6))
    }

    @Test(arguments: [
        "bytes = zeroblob(5)", "bytes = CAST(bytes || x'00' AS BLOB)", "checksum = checksum + 1",
    ])
    func `a damaged checkpoint is named, and the previous one is used`(_ change: String) throws {
        let log = try open()
        try log.fill(5)
        try log.save(.sample(4), pieceBytes: 5)
        try log.save(.sample(8), pieceBytes: 5)
        try folder.run("UPDATE checkpoints SET \(change) WHERE sequence = 8 AND piece = 1")
        let error = #expect(throws: LogError.self) { try log.checkpoint(through: log.last) }
        #expect(error?.code == .damaged)
        #expect(error?.numbers == SequenceNumber(8)...SequenceNumber(8))
        #expect(try log.checkpoint(through: SequenceNumber(7)) == .sample(4))
        // All entries can still be read.
        #expect(try log.readAll().count == 5)
    }

    @Test func `a checkpoint that lacks a piece does not count`() throws {
        let log = try open()
        try log.fill(5)
        try log.save(.sample(4), pieceBytes: 5)
        try log.save(.sample(8), pieceBytes: 5)
        try folder.run("DELETE FROM checkpoints WHERE sequence = 8 AND piece = 0")
        #expect(try log.checkpoint(through: log.last) == .sample(4))
    }

    @Test func `a checkpoint whose saving crashed does not count`() throws {
        let log = try open()
        try log.fill(5)
        try log.save(.sample(4), pieceBytes: 5)
        for piece in SavedCheckpoint.sample(10).pieces(of: 5).dropLast() { try log.save(piece) }
        let copy = try folder.copyAsAfterKill()
        let again = try SQLiteLog(directory: copy.path, settings: .small())
        #expect(again.last == SequenceNumber(10))
        #expect(try again.checkpoint(through: SequenceNumber(10)) == .sample(4))
    }

    @Test func `saving a checkpoint removes one of a lost history`()
        throws
    {
        let log = try open()
        try log.fill(5)
        try log.save(.sample(10))
        try folder.run("UPDATE checkpoints SET sequence = 99")
        #expect(try log.checkpoint(through: log.last) == nil)
        try log.save(.sample(8))
        #expect(try folder.number("SELECT count(DISTINCT sequence) FROM checkpoints") == 1)
    }
}

extension SavedCheckpoint {
    static func sample(_ number: UInt64, bytes: Int = 23) -> SavedCheckpoint {
        let contents = (0..<bytes).map { UInt8(truncatingIfNeeded: UInt64($0) &* 7 &+ number) }
        return SavedCheckpoint(sequence: SequenceNumber(number), bytes: contents[...])
    }
}

extension ActionLog {
    func save(_ checkpoint: SavedCheckpoint, pieceBytes: Int = 1 << 20) throws(LogError) {
        for piece in checkpoint.pieces(of: pieceBytes) { try save(piece) }
    }
}
