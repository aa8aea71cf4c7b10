import Conflux
import ConfluxHashing
import ConfluxLog
import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol
@testable import ConfluxSimulation

/// What the checks consider to be true when the log says something about the past.
struct TruthTests {
    private static let state = SimulatedState.model(SimulationTests.Stock.self, instances: 1) { _ in
        .add(amount: 1)
    }
    private static let store = state.stores[0]
    private static let initial = EncodedState(
        coding: .json, bytes: Array("{\"left\":0}".utf8)[...])

    private let log = LogID.random()

    /// Makes the entries of a log, one commit after the other.
    private struct Author {
        let log: LogID
        var last = SequenceNumber.zero
        var epoch = Epoch.none

        mutating func commit(
            in next: Epoch = Epoch(1), _ build: (inout CommitBuilder) -> Void
        ) throws -> LoggedCommit {
            var builder = CommitBuilder(
                log: log, epoch: next, predecessor: epoch, first: last.next)
            build(&builder)
            let body = builder.finish(timestamp: Timestamp(0)).dropFirst(Frame.size)
            let commit = try Commit.decode(body: body)
            (last, epoch) = (commit.last, next)
            return LoggedCommit(
                first: commit.first, last: commit.last, epoch: commit.epoch, bytes: body)
        }
    }

    private func batch(_ amounts: [Int], from counter: UInt64 = 1) -> Batch {
        var builder = BatchBuilder()
        for amount in amounts {
            builder.append(
                target: BatchTarget(target: .store(Self.store), schemaVersion: 1, coding: .json),
                payload: payload(amount))
        }
        return builder.finish(firstCounter: counter, settled: 0)
    }

    private func payload(_ amount: Int) -> [UInt8] {
        Array("{\"add\":{\"amount\":\(amount)}}".utf8)
    }

    private func record(_ amount: Int, process: Int, index: Int) -> DispatchRecord {
        let block = OutcomeBlock()
        _ = block.reserve()
        let record = DispatchRecord(
            process: process, index: index, handle: DispatchHandle(block: block, index: 0))
        record.payload = payload(amount)
        record.target = .store(Self.store)
        return record
    }

    private func digest(_ left: Int) throws -> Digest {
        Digest(of: try CanonicalCoder().encode(["left": left]))
    }

    @Test func `a replica that stopped within a commit lacks entries skipped before it`()
        throws
    {
        let branch = Branch(log: log, states: [Self.state.name: Self.state]) { _, _, _ in nil }
        var author = Author(log: log)
        let records = (1...5).map { record($0, process: 1, index: $0) }
        func append(_ build: (inout CommitBuilder) -> Void) throws {
            let commit = try author.commit(build)
            try branch.append(commit) { records[Int($1.counter) - 1] }
        }
        try append { $0.append(.created(Self.store, schemaVersion: 1, initial: Self.initial)) }
        // Entries 2 and 3: processes die at 3, which 4 skips. Then 5, 6 and 7: the next entry at which they die
        // is 6.
        try append { $0.append(batch([1, 2]), from: Incarnation(1)) }
        try append { $0.append(.skipped(SequenceNumber(3), .store(Self.store))) }
        try append { $0.append(batch([3, 4, 5], from: 3), from: Incarnation(1)) }
        let history = try #require(branch.history(of: Self.store, life: SequenceNumber(1)))
        let stopped = SequenceNumber(5)
        #expect(history.isRight(try digest(4), of: 1, inside: stopped))
        #expect(!history.isRight(try digest(6), of: 1, inside: stopped))
        // A replica that has not reached the skip still has the effect of the skipped entry.
        #expect(history.isRight(try digest(3), of: 1, at: SequenceNumber(3)))
        #expect(history.isRight(try digest(1), of: 1, at: SequenceNumber(3)))
        #expect(!history.isRight(try digest(3), of: 1, at: SequenceNumber(4)))
    }

    @Test func `outcomes that were reported while the log lacked them may return with a copy`()
        throws
    {
        let truth = Truth(log: log, states: [Self.state.name: Self.state])
        func key(_ incarnation: UInt64, _ counter: UInt64) -> DispatchRecord.Key {
            DispatchRecord.Key(
                session: DispatchRecord.Session(
                    log: log, incarnation: Incarnation(incarnation), nonce: .none),
                counter: counter)
        }
        var author = Author(log: log)
        let created = try author.commit {
            $0.append(.created(Self.store, schemaVersion: 1, initial: Self.initial))
        }
        try truth.appended(created)
        let lost = record(7, process: 1, index: 1)
        try truth.place(lost, at: key(1, 1))
        let tail = try author.commit { $0.append(batch([7]), from: Incarnation(1)) }
        try truth.appended(tail)
        // The power fails: the last commit is lost, and its action is withdrawn. Another action gets
        // its number and its counter.
        try truth.lost(keeping: [created], of: log)
        lost.isWithdrawalAsked = true
        try truth.told(
            lost, .failed(.withdrawn), hosted: [], isJumped: { _ in false }, isStopped: false)
        let other = record(8, process: 2, index: 1)
        try truth.place(other, at: key(1, 1))
        var second = Author(log: log, last: SequenceNumber(1), epoch: Epoch(1))
        try truth.appended(
            second.commit(in: Epoch(2)) { $0.append(batch([8]), from: Incarnation(1)) })
        // The log is restored from a copy that was made before the power failed.
        try truth.lost(keeping: [created, tail], of: log)
        #expect(truth.branch.place(of: lost) == SequenceNumber(2))
        #expect(truth.branch.place(of: other) == nil)
    }

    @Test func `an agreement of corrupted replicas holds again once a copy restores it`() throws {
        let truth = Truth(log: log, states: [Self.state.name: Self.state])
        var author = Author(log: log)
        let created = try author.commit {
            $0.append(.created(Self.store, schemaVersion: 1, initial: Self.initial))
        }
        let tail = try author.commit { $0.append(batch([7]), from: Incarnation(1)) }
        try truth.place(
            record(7, process: 1, index: 1),
            at: DispatchRecord.Key(
                session: DispatchRecord.Session(
                    log: log, incarnation: Incarnation(1), nonce: .none), counter: 1))
        try truth.appended(created)
        try truth.appended(tail)
        let (life, end) = (created.last, tail.last)
        let spoilt = try CanonicalCoder().encode(["left": 9])
        let reference = SavedSnapshot(
            store: Self.store, life: life, sequence: end, schemaVersion: 1,
            digest: Digest(of: spoilt), byteCount: UInt64(spoilt.count), kind: .confirmed)
        truth.snapshots.spoil(Self.store)
        truth.snapshots.hear(
            Vote(
                place: SnapshotPlace(store: Self.store, life: life, sequence: end),
                schemaVersion: 1, digest: reference.digest, refusals: Digest(of: []),
                byteCount: reference.byteCount), of: Incarnation(1))
        try truth.snapshots.saved(reference, spoilt[...], in: truth.branch)
        func isRight() -> Bool? {
            truth.branch.history(of: Self.store, life: life)?
                .isRight(reference.digest, of: 1, at: end)
        }
        #expect(isRight() == true)
        try truth.lost(keeping: [created], of: log)
        try truth.lost(keeping: [created, tail], of: log)
        #expect(isRight() == true)
        // In another log, the agreement does not hold.
        try truth.lost(keeping: [], of: LogID.random())
        #expect(isRight() == nil)
    }

    @Test func `an action reported as not in the log must never enter it`() throws {
        let truth = Truth(log: log, states: [Self.state.name: Self.state])
        var author = Author(log: log)
        try truth.appended(
            author.commit {
                $0.append(.created(Self.store, schemaVersion: 1, initial: Self.initial))
            })
        let record = record(7, process: 1, index: 1)
        try truth.place(
            record,
            at: DispatchRecord.Key(
                session: DispatchRecord.Session(
                    log: log, incarnation: Incarnation(1), nonce: .none), counter: 1))
        record.isWithdrawalAsked = true
        try truth.told(
            record, .failed(.withdrawn), hosted: [], isJumped: { _ in false }, isStopped: false)
        #expect(throws: Violation.self) {
            try truth.appended(author.commit { $0.append(batch([7]), from: Incarnation(1)) })
        }
    }
}
