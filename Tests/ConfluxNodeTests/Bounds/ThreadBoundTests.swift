import ConfluxLog
import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol
@testable import ConfluxSequencer
@testable import ConfluxZeroMQ

/// The limits of the sequencer's threads.
struct ThreadBoundTests {
    /// A log that never knows the outcome of the first few appends.
    private final class VagueLog: ActionLog {
        let inner = MemoryLog()
        var attempts = 0
        /// How many of the appends fail.
        let failures: Int
        /// The error of reading a checkpoint; nil if it can be read.
        var fault: LogError?

        init(failures: Int) { self.failures = failures }

        var id: LogID { inner.id }
        var last: SequenceNumber { inner.last }
        var floor: SequenceNumber { inner.floor }
        var space: LogSpace { inner.space }
        func claim(raisingEpochBy step: UInt64) throws(LogError) -> LogClaim {
            try inner.claim(raisingEpochBy: step)
        }
        func append(
            _ commits: [LoggedCommit], expecting last: SequenceNumber, forced: Bool
        ) throws(LogError) {
            attempts += 1
            try inner.append(commits, expecting: last, forced: forced)
            if attempts <= failures { throw LogError(.unknownOutcome, "Nobody knows.") }
        }
        func confirm() throws(LogError) { try inner.confirm() }
        func read(from: SequenceNumber, limitBytes: Int) throws(LogError) -> [LoggedCommit] {
            try inner.read(from: from, limitBytes: limitBytes)
        }
        func save(_ piece: CheckpointPiece) throws(LogError) { try inner.save(piece) }
        func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
            if let fault { throw fault }
            return try inner.checkpoint(through: last)
        }
        func save(_ piece: SnapshotPiece) throws(LogError) { try inner.save(piece) }
        func snapshots() throws(LogError) -> [SavedSnapshot] { try inner.snapshots() }
        func readSnapshot(
            of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
        ) throws(LogError) -> Bytes? {
            try inner.readSnapshot(of: key, from: offset, limitBytes: limitBytes)
        }
        func removeSnapshots(of store: StoreName) throws(LogError) {
            try inner.removeSnapshots(of: store)
        }
        func truncate(
            below floor: SequenceNumber, limitBytes: Int
        ) throws(LogError) -> Bool {
            try inner.truncate(below: floor, limitBytes: limitBytes)
        }
        func makeReader() throws(LogError) -> any LogReader { try inner.makeReader() }
        func close() { inner.close() }
    }

    /// The entries before it may have been discarded. Without the checkpoint, the log would seem to be damaged.
    @Test func `a checkpoint that can't be reached fails the term, and is not passed over`() {
        let log = VagueLog(failures: 0)
        var answers: [SequencerInput] = []
        let worker = LogWorker(log: log, answer: { answers.append($0) })
        worker.work(.claim(.random()))
        answers = []
        log.fault = LogError(.unreachable, "Nobody answers.")
        worker.work(.readCheckpoint(through: SequenceNumber(3)))
        guard answers.count == 1, case .logFailed(.logFailed(_, _)) = answers[0] else {
            Issue.record("\(answers)")
            return
        }
        answers = []
        log.fault = LogError(.damaged, "It is not what was written.")
        worker.work(.readCheckpoint(through: SequenceNumber(3)))
        guard answers.count == 1, case .checkpointRead(.unreadable(_)) = answers[0] else {
            Issue.record("\(answers)")
            return
        }
    }

    @Test(arguments: [1, 4, 5])
    func `after a bounded number of appends of unknown outcome the term ends`(
        failures: Int
    ) throws {
        let log = VagueLog(failures: failures)
        var answers: [SequencerInput] = []
        let worker = LogWorker(log: log, answer: { answers.append($0) })
        worker.work(.claim(.random()))
        worker.work(
            .append(
                Append(
                    commits: [
                        Append.Commit(
                            frame: Array(repeating: 7, count: 40)[...], first: SequenceNumber(1),
                            last: SequenceNumber(3))
                    ], isForced: false)))
        #expect(log.attempts == min(failures + 1, 5))
        // Repeated or not, the log has the commit once.
        #expect(try log.read(from: SequenceNumber(1), limitBytes: .max).count == 1)
        switch answers.last {
        case .appended?: #expect(failures < 5)
        case .logFailed?: #expect(failures == 5)
        default: Issue.record("no answer: \(answers)")
        }
    }
}
