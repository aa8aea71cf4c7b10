import ConfluxLog
import ConfluxVocabulary
import Testing

/// The promises that every engine keeps.
@Suite struct ActionLogTests {
    /// A log, and the object that keeps its files.
    private func make(_ engine: Engine) throws -> (any ActionLog, TemporaryFolder) {
        let folder = TemporaryFolder()
        return (try engine.open(folder), folder)
    }

    @Test(arguments: Engine.allCases)
    func `a new log is empty and its first claim has epoch 1`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        #expect(log.last == .zero)
        #expect(log.floor == SequenceNumber(1))
        #expect(log.id != .none)
        #expect(try log.readAll().isEmpty)
        #expect(try log.claim() == LogClaim(epoch: Epoch(1), last: .zero, lastEpoch: .none))
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `appended commits can be read`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        let commits = try log.fill(5)
        #expect(try log.readAll() == commits)
        #expect(log.last == SequenceNumber(10))
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `a claim returns the log's end and the epoch`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        try log.fill(2)
        _ = try log.claim()
        let claim = try log.claim()
        #expect(
            claim == LogClaim(epoch: Epoch(3), last: SequenceNumber(4), lastEpoch: Epoch(1)))
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `nothing is appended without a claim`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        #expect(code { try log.append(.sample(1...1)) } == .notClaimed)
        #expect(code { try log.confirm() } == .notClaimed)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `a commit of an older epoch is superseded and changes nothing`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        let commits = try log.fill(1)
        _ = try log.claim()
        #expect(code { try log.append(.sample(3...4, epoch: 1)) } == .superseded)
        #expect(try log.readAll() == commits)
        try log.append(.sample(3...4, epoch: 2))
        #expect(log.last == SequenceNumber(4))
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `an append that expects another end is refused`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        let commits = try log.fill(2)
        #expect(code { try log.append(.sample(3...4, bytes: 11)) } == .endDiffers)
        #expect(code { try log.append(.sample(6...6)) } == .endDiffers)
        #expect(code { try log.append(.sample(1...9)) } == .endDiffers)
        #expect(try log.readAll() == commits)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `the same commit again succeeds and changes nothing`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        let commits = try log.fill(3)
        try log.append(commits[2])
        try log.append(commits[2], forced: true)
        #expect(try log.readAll() == commits)
        #expect(log.last == SequenceNumber(6))
        try log.append(.sample(7...7))
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `a retry reports the truth even when a newer claim exists`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        let commits = try log.fill(1)
        _ = try log.claim()
        try log.append(commits[0])
        #expect(code { try log.append(.sample(1...2, bytes: 11)) } == .superseded)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `commits whose numbers do not fit are invalid`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        _ = try log.claim()
        let expecting = SequenceNumber.zero
        for commit in [
            LoggedCommit.sample(2...2), .sample(1...1, epoch: 0),
            LoggedCommit(first: .init(1), last: .zero, epoch: .init(1), bytes: [1]),
            LoggedCommit(first: .init(1), last: .init(.max), epoch: .init(1), bytes: [1]),
        ] {
            #expect(
                code { try log.append(commit, expecting: expecting, forced: false) }
                    == .invalidCommit)
        }
        #expect(
            code {
                try log.append(
                    .sample(1...1), expecting: SequenceNumber(.max), forced: false)
            } == .invalidCommit)
        #expect(log.last == .zero)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `an empty commit and a slice are kept as they are`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        _ = try log.claim()
        let frame: [UInt8] = Array(0..<100)
        try log.append(.sample(1...1, bytes: 0))
        try log.append(
            LoggedCommit(
                first: .init(2), last: .init(2), epoch: .init(1), bytes: frame[16..<90]))
        let commits = try log.readAll()
        #expect(commits[0].bytes.isEmpty)
        #expect(Array(commits[1].bytes) == Array(16..<90))
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `a read begins with the commit that contains the number`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        let commits = try log.fill(4)
        func read(_ from: UInt64) throws -> [LoggedCommit] {
            try log.read(from: SequenceNumber(from), limitBytes: .max)
        }
        #expect(try read(0) == commits)
        #expect(try read(1) == commits)
        #expect(try read(2) == commits)
        #expect(try read(3) == Array(commits[1...]))
        #expect(try read(8) == Array(commits[3...]))
        #expect(try read(9).isEmpty)
        #expect(try read(.max).isEmpty)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `a read keeps to its limit but returns at least one commit`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        let commits = try log.fill(4, bytes: 10)
        func count(_ limitBytes: Int) throws -> Int {
            let read = try log.read(from: SequenceNumber(3), limitBytes: limitBytes)
            #expect(read == Array(commits[1..<1 + read.count]))
            return read.count
        }
        #expect(try [0, 1, 10, 19, 20, 29, 30, 1_000].map(count) == [1, 1, 1, 1, 2, 2, 3, 3])
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: Engine.allCases)
    func `a closed log says so and may be closed again`(_ engine: Engine) throws {
        let (log, folder) = try make(engine)
        try log.fill(1)
        log.close()
        log.close()
        #expect(code { _ = try log.claim() } == .closed)
        #expect(code { try log.append(.sample(3...3)) } == .closed)
        #expect(code { try log.confirm() } == .closed)
        #expect(code { _ = try log.readAll() } == .closed)
        withExtendedLifetime(folder) {}
    }
}

@Suite struct MemoryLogTests {
    @Test func `each log has its own id`() {
        #expect(MemoryLog().id != MemoryLog().id)
    }

    @Test func `a log at its bound is full and keeps what it has`() throws {
        let log = MemoryLog(limitBytes: 1_000)
        let commits = try log.fill(2, bytes: 300)
        #expect(code { try log.append(.sample(5...5, bytes: 300)) } == .full)
        #expect(try log.readAll() == commits)
        try log.append(.sample(5...5, bytes: 10))
    }

    @Test func `a new claim supersedes the previous owner`() throws {
        let old = MemoryLog()
        let commits = try old.fill(2)
        let new = MemoryLog(sharing: old)
        #expect(new.id == old.id)
        try old.confirm()
        let claim = try new.claim()
        #expect(claim == LogClaim(epoch: Epoch(2), last: SequenceNumber(4), lastEpoch: Epoch(1)))
        #expect(code { try old.confirm() } == .superseded)
        #expect(code { try old.append(.sample(5...5, epoch: 1)) } == .superseded)
        let snapshot = SavedSnapshot.sample(4)
        #expect(code { try old.keep(snapshot) } == .superseded)
        #expect(code { try old.save(.sample(4)) } == .superseded)
        #expect(try new.checkpoint(through: new.last) == nil)
        try new.keep(snapshot)
        #expect(code { try old.removeSnapshots(of: .sample()) } == .superseded)
        #expect(try new.snapshots() == [snapshot])
        try new.confirm()
        try new.append(.sample(5...5, epoch: 2))
        #expect(try old.readAll().count == commits.count + 1)
        old.close()
        #expect(try new.readAll().count == 3)
    }
}
