import ConfluxHashing
import ConfluxLog
import Testing

@testable import ConfluxProtocol
@testable import ConfluxSequencer

/// How the log's thread keeps entries aside for stores that nobody hosts (rule 21), step by step.
struct AsideRunTests {
    /// A log whose entries all concern both stores, and its worker.
    private final class Setup {
        let log = MemoryLog()
        private(set) var kept: [AsideKept] = []
        private(set) lazy var worker = LogWorker(
            log: log, begin: { [unowned self] reader, _ in reads.work(.reading(through: reader)) },
            answer: { [unowned self] input in
                if case .keptAside(let kept) = input { self.kept += kept }
            })
        private(set) lazy var reads = ReadWorker(
            answer: { _ in }, save: { [unowned self] in gathered = $0 })
        private var gathered: AsideRun?
        let stores = ["first", "second"].compactMap { StoreName("list/\($0)") }
        let life = SequenceNumber(1)

        init(entries count: UInt64) {
            worker.work(.claim(.random()))
            for number in 1...count {
                var batch = BatchBuilder()
                batch.append(
                    target: BatchTarget(
                        target: .state(stores[0].state), schemaVersion: 1, coding: .json),
                    payload: Array(repeating: 0x78, count: 5_000))
                var builder = CommitBuilder(
                    log: log.id, epoch: Epoch(1), predecessor: Epoch(1),
                    first: SequenceNumber(number))
                builder.append(batch.finish(firstCounter: number, settled: 0), from: Incarnation(9))
                worker.work(
                    .append(
                        Append(
                            commits: [
                                Append.Commit(
                                    frame: builder.finish(timestamp: Timestamp(0))[...],
                                    first: SequenceNumber(number), last: SequenceNumber(number))
                            ], isForced: false)))
            }
        }

        func job(_ index: Int, after: SequenceNumber, former: SnapshotReference? = nil) -> AsideJob
        {
            AsideJob(store: stores[index], life: life, after: after, former: former)
        }

        /// Runs a pass to its end.
        func pass(
            _ jobs: [AsideJob], through last: UInt64, heldBytesMax: Int = .max
        ) -> [AsideKept] {
            kept = []
            var rest: LogJob? = gather(
                AsideRun(jobs, through: SequenceNumber(last), heldBytesMax: heldBytesMax)
            ).map { .keepAside($0) }
            while let job = rest { rest = worker.work(job) }
            return kept
        }

        /// Reads everything that a pass needs.
        func gather(_ run: AsideRun) -> AsideRun? {
            var rest: ReaderJob? = .gather(run)
            while let job = rest { rest = reads.work(job) }
            defer { gathered = nil }
            return gathered
        }

        func numbers(of kept: AsideKept) throws -> [UInt64] {
            let reference = try #require(kept.reference)
            let key = SavedSnapshot.Key(
                store: kept.store, life: kept.life, sequence: reference.sequence)
            let bytes = try #require(
                try log.readSnapshot(of: key, from: 0, limitBytes: Int(reference.byteCount)))
            return try AsideEntries.commits(of: bytes).map(\.commit.first.rawValue)
        }
    }

    /// Each step looks through 4 MiB of commits.
    @Test func `a pass that holds too much ends early, and undoes nothing`() throws {
        let setup = Setup(entries: 1_800)
        let life = setup.life
        // The second store is ahead: it has all entries up to 1,500.
        let ahead = try #require(setup.pass([setup.job(1, after: life)], through: 1_500).first)
        #expect(try setup.numbers(of: ahead) == Array(2...1_500))
        let jobs = [
            setup.job(0, after: life),
            setup.job(1, after: ahead.through, former: ahead.reference),
        ]
        let kept = setup.pass(jobs, through: 1_800, heldBytesMax: 100_000)
        let first = try #require(kept.first)
        #expect(first.through > life && first.through < ahead.through)
        #expect(try setup.numbers(of: first) == Array(2...first.through.rawValue))
        #expect(kept.last?.through == ahead.through && kept.last?.reference == ahead.reference)
        #expect(try setup.numbers(of: ahead) == Array(2...1_500))
        // The next pass continues.
        let next = setup.pass(
            [
                setup.job(0, after: first.through, former: first.reference),
                setup.job(1, after: ahead.through, former: ahead.reference),
            ], through: 1_800)
        for kept in next { #expect(try setup.numbers(of: kept) == Array(2...1_800)) }
    }

    @Test func `a store whose entries can't be kept is named, and the others are kept`() throws {
        let setup = Setup(entries: 20)
        let missing = SnapshotReference(
            sequence: SequenceNumber(4), schemaVersion: 0, digest: Digest(of: [1]), byteCount: 1)
        let kept = setup.pass(
            [
                setup.job(0, after: SequenceNumber(4), former: missing),
                setup.job(1, after: setup.life),
            ], through: 20)
        #expect(kept.map { $0.failure != nil } == [true, false])
        #expect(kept[0].reference == nil)
        #expect(try setup.numbers(of: kept[1]) == Array(2...20))
    }

    @Test func `the rest of a job ends with its term`() throws {
        let setup = Setup(entries: 20)
        let jobs = [0, 1].map { setup.job($0, after: setup.life) }
        let run = try #require(setup.gather(AsideRun(jobs, through: SequenceNumber(20))))
        let rest = try #require(setup.worker.work(.keepAside(run)))
        setup.worker.work(.renew(.random()))
        #expect(setup.worker.work(rest) == nil)
        #expect(setup.kept.isEmpty)
        // The first step was already done.
        #expect(try setup.log.snapshots().map(\.store) == [setup.stores[0]])
    }
}
