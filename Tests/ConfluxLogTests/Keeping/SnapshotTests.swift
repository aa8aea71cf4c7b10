import ConfluxLog
import ConfluxVocabulary
import Testing

/// Snapshots of stores in every engine.
@Suite struct SnapshotTests {
    private let folder = TemporaryFolder()

    @Test(arguments: Engine.allCases)
    func `a snapshot counts once its last piece is saved, and is read from any byte`(
        _ engine: Engine
    )
        throws
    {
        let log = try engine.make(folder)
        let saved = SavedSnapshot.sample(8)
        for piece in saved.pieces(of: 7).dropLast() {
            try log.save(piece)
            #expect(try log.snapshots().isEmpty)
            #expect(try log.readSnapshot(of: saved.key, from: 0, limitBytes: 9) == nil)
        }
        try log.save(try #require(saved.pieces(of: 7).last))
        #expect(try log.snapshots() == [saved])
        for offset in 0...25 {
            for limit in [0, 1, 6, 7, 8, 100] {
                let expected = saved.contents.dropFirst(offset).prefix(max(1, limit))
                let read = try log.readSnapshot(
                    of: saved.key, from: UInt64(offset), limitBytes: limit)
                #expect(read.map(Array.init) == Array(expected), "\(offset), \(limit)")
            }
        }
        var other = saved.key
        other.sequence = SequenceNumber(7)
        #expect(try log.readSnapshot(of: other, from: 0, limitBytes: 9) == nil)
        #expect(try log.readAll().count == 10)
    }

    @Test(arguments: Engine.allCases)
    func `snapshots of a former life do not replace those of the present one`(_ engine: Engine)
        throws
    {
        let log = try engine.make(folder)
        let present = SavedSnapshot.sample(8, life: 6)
        try log.keep(present)
        try log.keep(.sample(12, life: 2, kind: .aside))
        try log.keep(.sample(10, life: 2))
        #expect(try log.snapshots() == [present])
        #expect(try log.contents(of: present) == present.contents)
        // The next one replaces the one of the former life.
        let next = SavedSnapshot.sample(14, life: 13)
        try log.keep(next)
        #expect(try log.snapshots() == [next])
    }

    @Test(arguments: Engine.allCases)
    func `two confirmed snapshots of a store are kept`(_ engine: Engine) throws {
        let log = try engine.make(folder)
        let other = SavedSnapshot.sample(3, of: .sample("other"), life: 3)
        try log.keep(other)
        for number in [2, 6, 10, 14] as [UInt64] { try log.keep(.sample(number)) }
        #expect(try log.snapshots() == [other, .sample(10), .sample(14)])
        #expect(try log.contents(of: .sample(6)) == nil)
        for kept in [other, .sample(10), .sample(14)] {
            #expect(try log.contents(of: kept) == kept.contents)
        }
        try log.removeSnapshots(of: .sample())
        #expect(try log.snapshots() == [other])
        #expect(try log.contents(of: .sample(14)) == nil)
    }

    @Test(arguments: Engine.allCases)
    func `the next snapshot replaces an unconfirmed one, and no confirmed one`(_ engine: Engine)
        throws
    {
        let log = try engine.make(folder)
        let unconfirmed = SavedSnapshot.sample(12, kind: .compared)
        for number in [2, 6] as [UInt64] { try log.keep(.sample(number)) }
        try log.keep(.sample(10, kind: .compared))
        try log.keep(unconfirmed)
        #expect(try log.snapshots() == [.sample(2), .sample(6), unconfirmed])
        // Once it is confirmed, the same snapshot is saved again. Until then the old one is there.
        for piece in SavedSnapshot.sample(12).pieces(of: 7).dropLast() { try log.save(piece) }
        #expect(try log.contents(of: unconfirmed) == unconfirmed.contents)
        try log.keep(.sample(12))
        #expect(try log.snapshots() == [.sample(6), .sample(12)])
        #expect(try log.contents(of: .sample(12)) == SavedSnapshot.sample(12).contents)
    }

    @Test(arguments: Engine.allCases)
    func `a later life replaces the previous one`(_ engine: Engine) throws {
        let log = try engine.make(folder)
        for number in [2, 6] as [UInt64] { try log.keep(.sample(number)) }
        let later = SavedSnapshot.sample(16, life: 15)
        try log.keep(later)
        #expect(try log.snapshots() == [later])
    }

    @Test(arguments: Engine.allCases)
    func `the first piece of the next snapshot discards an unfinished one of its store`(
        _ engine: Engine
    ) throws {
        let log = try engine.make(folder)
        let other = SavedSnapshot.sample(8, of: .sample("other"))
        let pieces = SavedSnapshot.sample(6).pieces(of: 7)
        let otherPieces = other.pieces(of: 7)
        try log.save(pieces[0])
        // Snapshots of two stores can be saved at the same time.
        for piece in otherPieces.dropLast() { try log.save(piece) }
        try log.save(pieces[1])
        try log.save(SavedSnapshot.sample(12).pieces(of: 7)[0])
        #expect(code { try log.save(pieces[2]) } == .invalidSnapshot)
        try log.save(otherPieces[3])
        #expect(try log.snapshots() == [other])
        for piece in SavedSnapshot.sample(12).pieces(of: 7).dropFirst() { try log.save(piece) }
        #expect(try log.snapshots() == [other, .sample(12)])
        #expect(try log.contents(of: other) == other.contents)
    }

    @Test(arguments: Engine.allCases)
    func `an empty state has a snapshot`(_ engine: Engine) throws {
        let log = try engine.make(folder)
        let empty = SavedSnapshot.sample(4, bytes: 0)
        try log.keep(empty)
        #expect(try log.snapshots() == [empty])
        #expect(try log.readSnapshot(of: empty.key, from: 0, limitBytes: 9)?.isEmpty == true)
    }

    @Test(arguments: Engine.allCases)
    func `pieces that can't belong to a snapshot of this log are refused`(_ engine: Engine) throws {
        let log = try engine.make(folder)
        let pieces = SavedSnapshot.sample(6).pieces(of: 7)
        #expect(code { try log.save(pieces[1]) } == .invalidSnapshot)
        try log.save(pieces[0])
        #expect(code { try log.save(pieces[2]) } == .invalidSnapshot)
        var changed = pieces[1]
        changed.snapshot.schemaVersion = 4
        #expect(code { try log.save(changed) } == .invalidSnapshot)
        for refused in [
            SavedSnapshot.sample(21), .sample(0), .sample(6, life: 0), .sample(6, life: 7),
        ] {
            #expect(code { try log.keep(refused) } == .invalidSnapshot, "\(refused)")
        }
        let none = SnapshotPiece(snapshot: .sample(6), offset: 0, bytes: [])
        let tooMuch = SnapshotPiece(
            snapshot: .sample(6), offset: 0, bytes: [UInt8](repeating: 0, count: 24)[...])
        #expect(code { try log.save(none) } == .invalidSnapshot)
        #expect(code { try log.save(tooMuch) } == .invalidSnapshot)
        try log.keep(.sample(6))
        #expect(try log.snapshots() == [.sample(6)])
    }

    @Test func `a state and a piece at their bounds are accepted, and above them refused`() throws {
        let log = try Engine.memory.make(folder)
        func piece(of total: UInt64, bytes: Int) -> SnapshotPiece {
            var snapshot = SavedSnapshot.sample(6)
            snapshot.byteCount = total
            return SnapshotPiece(
                snapshot: snapshot, offset: 0, bytes: [UInt8](repeating: 0, count: bytes)[...])
        }
        let most = SavedSnapshot.bytesMax
        let largest = SnapshotPiece.bytesMax
        #expect(code { try log.save(piece(of: most, bytes: 1)) } == nil)
        #expect(code { try log.save(piece(of: most + 1, bytes: 1)) } == .invalidSnapshot)
        #expect(code { try log.save(piece(of: most, bytes: largest)) } == nil)
        #expect(code { try log.save(piece(of: most, bytes: largest + 1)) } == .invalidSnapshot)
    }

    @Test func `snapshots count towards the bound of a log in memory`() throws {
        let log = MemoryLog(limitBytes: 5_000)
        try log.fill(3)
        try log.keep(.sample(4, bytes: 3_000), pieceBytes: 1_000)
        #expect(
            code { try log.keep(.sample(6, bytes: 3_000), pieceBytes: 1_000) } == .full)
        #expect(code { try log.append(.sample(7...7, bytes: 3_000)) } == .full)
        try log.removeSnapshots(of: .sample())
        try log.append(.sample(7...7, bytes: 3_000))
    }

    @Test(arguments: Engine.allCases)
    func `a claim discards unfinished snapshots, and a reader sees finished ones`(_ engine: Engine)
        throws
    {
        let log = try engine.make(folder)
        let reader = try log.makeReader()
        try log.keep(.sample(6))
        let pieces = SavedSnapshot.sample(8).pieces(of: 7)
        try log.save(pieces[0])
        _ = try log.claim()
        #expect(code { try log.save(pieces[1]) } == .invalidSnapshot)
        #expect(try log.snapshots() == [.sample(6)])
        let key = SavedSnapshot.sample(6).key
        #expect(
            try reader.readSnapshot(of: key, from: 20, limitBytes: 9).map(Array.init)
                == Array(SavedSnapshot.sample(6).contents.suffix(3)))
        reader.close()
        #expect(code { _ = try reader.readSnapshot(of: key, from: 0, limitBytes: 9) } == .closed)
        log.close()
        #expect(code { try log.keep(.sample(6)) } == .closed)
        #expect(code { _ = try log.snapshots() } == .closed)
        #expect(code { _ = try log.readSnapshot(of: key, from: 0, limitBytes: 9) } == .closed)
        #expect(code { try log.removeSnapshots(of: .sample()) } == .closed)
    }
}
