import ConfluxHashing
import ConfluxLog
import ConfluxVocabulary
import Testing

@testable import ConfluxSimulation

/// The simulated log keeps and loses what a real log on disk would.
struct SimulatedLogTests {
    private let store = StoreName(state: .shared, instance: .shared)

    private func open(_ disk: SimulatedDisk, _ fault: SimulatedLog.Fault = .none) -> SimulatedLog {
        SimulatedLog(disk: disk, nextFault: { _ in fault }, appended: { _ in }, saved: { _, _ in })
    }

    /// Adds an entry, its checkpoint and its snapshot, each of one byte.
    private func extend(_ log: SimulatedLog, _ disk: SimulatedDisk, forced: Bool = false) throws {
        let next = log.last.next
        try log.append(
            LoggedCommit(first: next, last: next, epoch: disk.epoch, bytes: [1]),
            expecting: log.last, forced: forced)
        for piece in SavedCheckpoint(sequence: next, bytes: [1]).pieces() { try log.save(piece) }
        try log.save(SnapshotPiece(snapshot: snapshot(next.rawValue), offset: 0, bytes: [1]))
    }

    private func snapshot(_ number: UInt64) -> SavedSnapshot {
        SavedSnapshot(
            store: store, life: SequenceNumber(1), sequence: SequenceNumber(number),
            schemaVersion: 1, digest: Digest(of: [1]), byteCount: 1, kind: .confirmed)
    }

    private func numbers(_ log: SimulatedLog) throws -> [UInt64] {
        try log.read(from: SequenceNumber(1), limitBytes: .max).map(\.first.rawValue)
    }

    private func truncate(_ log: SimulatedLog, below floor: UInt64) throws {
        while try !log.truncate(below: SequenceNumber(floor), limitBytes: 1) {}
    }

    @Test func `a power loss removes what follows the last sync, and may restore it`() throws {
        let disk = SimulatedDisk(id: .random(), durability: .os)
        let log = open(disk)
        _ = try log.claim()
        for number in 1...6 { try extend(log, disk, forced: number == 4) }
        // The commit at 4 brings everything before it to the disk, but nothing after it.
        try truncate(log, below: 6)
        #expect(log.floor == SequenceNumber(6))
        #expect(try numbers(log) == [6])
        #expect(disk.losePower())
        #expect(try numbers(log) == [1, 2, 3, 4])
        #expect(log.floor == SequenceNumber(1))
        #expect(try log.snapshots() == [snapshot(2), snapshot(3)])
        #expect(try log.checkpoint(through: log.last)?.sequence == SequenceNumber(3))
        #expect(!disk.losePower())
    }

    @Test func `with fsync nothing is lost, and a copy is as it was`() throws {
        let disk = SimulatedDisk(id: .random(), durability: .fsync)
        let log = open(disk)
        _ = try log.claim()
        for _ in 1...4 { try extend(log, disk) }
        disk.takeCopy()
        for _ in 5...8 { try extend(log, disk) }
        try truncate(log, below: 7)
        #expect(!disk.losePower())
        #expect(try numbers(log) == [7, 8])
        #expect(try log.snapshots() == [snapshot(7), snapshot(8)])
        #expect(try log.readSnapshot(of: snapshot(8).key, from: 0, limitBytes: 9) == [1])
        #expect(throws: LogError.self) { try truncate(log, below: 9) }
        // Discarded commits are not served, but they did happen.
        #expect(disk.commits.count == 8)
        #expect(disk.restoreCopy())
        #expect(try numbers(log) == [1, 2, 3, 4])
        #expect(try log.snapshots() == [snapshot(3), snapshot(4)])
        disk.forget(as: .random())
        #expect(try log.snapshots().isEmpty && log.floor == SequenceNumber(1))
    }

    @Test(arguments: [true, false])
    func `a truncation of unknown outcome happened or did not`(isDone: Bool) throws {
        let disk = SimulatedDisk(id: .random(), durability: .fsync)
        let log = open(disk)
        _ = try log.claim()
        for _ in 1...4 { try extend(log, disk) }
        let other = open(disk, .unknown(isDone: isDone))
        _ = try other.claim()
        let error = #expect(throws: LogError.self) { try truncate(other, below: 4) }
        #expect(error?.code == .unknownOutcome)
        #expect(other.floor == SequenceNumber(isDone ? 2 : 1))
        #expect(throws: LogError.self) { try truncate(log, below: 4) }
    }

    @Test func `at its bound a log takes claims and checkpoints, and nothing else`() throws {
        let disk = SimulatedDisk(id: .random(), durability: .fsync, limitBytes: 10)
        let log = open(disk)
        func append(_ byteCount: Int, forced: Bool = false) throws {
            let next = log.last.next
            try log.append(
                LoggedCommit(
                    first: next, last: next, epoch: disk.epoch,
                    bytes: [UInt8](repeating: 1, count: byteCount)[...]),
                expecting: log.last, forced: forced)
        }
        _ = try log.claim()
        for _ in 1...3 { try append(3) }
        #expect(log.space == LogSpace(usedBytes: 9, of: 10))
        #expect(throws: LogError.self) { try append(2) }
        try append(2, forced: true)
        #expect(throws: LogError.self) {
            try log.save(SnapshotPiece(snapshot: snapshot(4), offset: 0, bytes: [1]))
        }
        for number in 3...4 {
            for piece in SavedCheckpoint(sequence: SequenceNumber(UInt64(number)), bytes: [1])
                .pieces()
            {
                try log.save(piece)
            }
        }
        #expect(log.space.usedBytes == 13)
        try truncate(log, below: 4)
        try log.save(SnapshotPiece(snapshot: snapshot(4), offset: 0, bytes: [1]))
        #expect(log.space.usedBytes == 5)
    }
}
