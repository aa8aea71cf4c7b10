import ConfluxLog
import ConfluxVocabulary
import Testing

/// Truncation in every engine.
@Suite struct TruncationTests {
    private let folder = TemporaryFolder()

    @Test(arguments: Engine.allCases)
    func `whole commits below the floor are removed, oldest first, some at a time`(_ engine: Engine)
        throws
    {
        let log = try engine.make(folder)
        let commits = try log.readAll()
        #expect(log.floor == SequenceNumber(1))
        for number in [12, 16] as [UInt64] { try log.save(.sample(number)) }
        // 8 is the end of 7–8, so this commit stays.
        let floors = try log.truncateAll(below: 8)
        #expect(log.floor == SequenceNumber(7))
        #expect(floors.allSatisfy { [3, 5, 7].contains($0.rawValue) })
        #expect(try log.readAll() == Array(commits[3...]))
        for number in 1...8 as ClosedRange<UInt64> {
            let read = try log.read(from: SequenceNumber(number), limitBytes: 1)
            #expect(read == [commits[3]])
        }
        // The floor never goes back, and appends continue.
        try log.truncateAll(below: 3)
        #expect(log.floor == SequenceNumber(7))
        try log.truncateAll(below: 9)
        #expect(log.floor == SequenceNumber(9))
        let more = LoggedCommit.sample(21...23)
        try log.append(more)
        #expect(try log.readAll() == Array(commits[4...]) + [more])
        #expect(try log.claim().last == SequenceNumber(23))
    }

    @Test(arguments: Engine.allCases)
    func `one call removes about as many bytes as it may, and at least one commit`(
        _ engine: Engine
    ) throws {
        let log = try engine.make(folder, commits: 20, bytes: 1_000)
        for number in [36, 40] as [UInt64] { try log.save(.sample(number)) }
        _ = try log.truncate(below: SequenceNumber(37), limitBytes: 1)
        // On disk, no file is removed yet, so there is nothing to do for each commit.
        let isOnDisk = [.fsync, .os].contains(engine)
        #expect(log.floor == SequenceNumber(isOnDisk ? 37 : 3))
        _ = try log.truncate(below: SequenceNumber(37), limitBytes: 3_500)
        let reached: ClosedRange<UInt64> = isOnDisk ? 37...37 : 9...11
        #expect(reached.contains(log.floor.rawValue))
        try log.truncateAll(below: 37, limitBytes: 1 << 20)
        #expect(log.floor == SequenceNumber(37))
    }

    @Test(arguments: Engine.allCases)
    func `two checkpoints stay at the floor or above it, and none is saved below`(
        _ engine: Engine
    ) throws {
        let log = try engine.make(folder)
        func truncate(_ floor: UInt64) -> LogError.Code? {
            code { _ = try log.truncate(below: SequenceNumber(floor), limitBytes: 1 << 20) }
        }
        #expect(truncate(2) == .invalidFloor)
        try log.save(.sample(12))
        #expect(truncate(13) == .invalidFloor)
        for piece in SavedCheckpoint.sample(16).pieces(of: 7).dropLast() { try log.save(piece) }
        #expect(truncate(13) == .invalidFloor)
        try log.save(.sample(16))
        #expect(truncate(14) == .invalidFloor)
        #expect(log.floor == SequenceNumber(1))
        #expect(truncate(13) == nil)
        #expect(log.floor == SequenceNumber(13))
        #expect(code { try log.save(.sample(11)) } == .invalidCheckpoint)
        try log.save(.sample(12))
        #expect(try log.checkpoint(through: log.last) == .sample(12))
        // A truncation below the floor needs no checkpoints.
        #expect(truncate(13) == nil)
    }

    @Test(arguments: Engine.allCases)
    func `the last commit is never truncated`(_ engine: Engine) throws {
        let log = try engine.make(folder)
        for _ in 1...2 {
            try log.save(.sample(19))
            try log.save(.sample(20))
        }
        try log.truncateAll(below: 20)
        #expect(log.floor == SequenceNumber(19))
        #expect(log.last == SequenceNumber(20))
        #expect(try log.claim().lastEpoch == Epoch(1))
        try log.append(.sample(21...21, epoch: 2))
        #expect(try log.readAll().map(\.first.rawValue) == [19, 21])
    }

    @Test(arguments: Engine.allCases)
    func `without a claim, or once closed, nothing is truncated`(_ engine: Engine) throws {
        let log = try engine.make(folder)
        for number in [12, 16] as [UInt64] { try log.save(.sample(number)) }
        if let memory = log as? MemoryLog {
            let other = MemoryLog(sharing: memory)
            #expect(
                code { _ = try other.truncate(below: SequenceNumber(3), limitBytes: 1) }
                    == .notClaimed)
            _ = try other.claim()
            #expect(
                code { _ = try log.truncate(below: SequenceNumber(3), limitBytes: 1) }
                    == .superseded)
        }
        log.close()
        #expect(
            code { _ = try log.truncate(below: SequenceNumber(3), limitBytes: 1) } == .closed)
    }

    @Test(arguments: Engine.allCases)
    func `a reader begins at the present floor`(_ engine: Engine) throws {
        let log = try engine.make(folder)
        let commits = try log.readAll()
        let reader = try log.makeReader()
        for number in [12, 16] as [UInt64] { try log.save(.sample(number)) }
        for floor in [3, 7, 13] as [UInt64] {
            try log.truncateAll(below: floor)
            let read = try reader.read(
                from: SequenceNumber(1), through: SequenceNumber(14), limitBytes: .max)
            #expect(read == commits.filter { $0.first.rawValue >= floor && $0.first.rawValue < 15 })
        }
        reader.close()
    }

    @Test func `truncation gives a log in memory room again`() throws {
        let log = MemoryLog(limitBytes: 60_000)
        try log.fill(12, bytes: 4_000)
        #expect(code { try log.append(.sample(25...25, bytes: 30_000)) } == .full)
        for number in [20, 24] as [UInt64] { try log.save(.sample(number)) }
        try log.truncateAll(below: 21)
        try log.append(.sample(25...25, bytes: 30_000))
        #expect(try log.readAll().map(\.first.rawValue) == [21, 23, 25])
    }
}
