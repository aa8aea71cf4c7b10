import Conflux
import ConfluxHashing
import ConfluxVocabulary
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// A snapshot that is decoded in the background, while other things happen to its store.
struct LargeSnapshotTests {
    private let setup: ApplierSetup
    private let name = StoreName(state: Name("tally")!, instance: .shared)

    init() throws {
        setup = try ApplierSetup(inPlaceBytesMax: 20, sliceBytesMax: 40)
    }

    private func restore(_ json: String, at sequence: UInt64, aside: Bytes? = nil) {
        setup.deliver(
            .restore(
                name, life: SequenceNumber(2),
                Snapshot(
                    sequence: SequenceNumber(sequence), schemaVersion: 1,
                    state: EncodedState(coding: .json, bytes: Array(json.utf8)[...])),
                in: VersionInForce(1), aside: aside, skipped: [],
                through: SequenceNumber(sequence), request: sequence))
    }

    private func large(_ count: Int) -> String {
        "{\"count\":\(count)}" + String(repeating: " ", count: 30)
    }

    /// Gives the store a commit that counts on from this number, once or several times.
    private func catchUp(countingOn upTo: UInt64, at first: UInt64, _ count: Int = 1) {
        var builder = BatchBuilder()
        for _ in 0..<count {
            builder.append(
                target: BatchTarget(target: .store(name), schemaVersion: 1, coding: .json),
                payload: Array("{\"countOn\":{\"upTo\":\(upTo)}}".utf8))
        }
        let commit = Commit(
            log: setup.log, epoch: Epoch(1), predecessor: Epoch(1), first: SequenceNumber(first),
            count: UInt32(count), timestamp: Timestamp(0),
            blocks: [.batch(Incarnation(9), builder.finish(firstCounter: 1, settled: 0))])
        setup.deliver(.catchUp(commit, byteCount: 100, to: [.store(name)]))
    }

    private func takeBackground() -> [@Sendable () -> Void] {
        setup.told.background.withLock { bodies in
            defer { bodies = [] }
            return bodies
        }
    }

    /// Does the jobs that were posted.
    private func workPosted() {
        while case let jobs = setup.takePosted(), !jobs.isEmpty {
            for job in jobs { setup.applier.perform(job) }
        }
    }

    /// The requests of the snapshots after which the store asked for entries.
    private var ready: [UInt64] {
        setup.reports.compactMap {
            if case .ready(_, through: _, let request) = $0 { request } else { nil }
        }
    }

    private var isStopped: Bool { setup.applier.place(of: name)?.stopped != nil }

    @Test func `a large snapshot is installed once it is decoded`() {
        restore(large(5), at: 7)
        #expect(setup.store.computed.count == 0)
        setup.workBehind()
        #expect(setup.store.computed.count == 5)
        #expect(ready.last == 7)
    }

    @Test func `a snapshot that is outdated by then is not installed`() {
        restore(large(5), at: 7)
        restore("{\"count\":6}", at: 8)
        setup.workBehind()
        #expect(setup.store.computed.count == 6)
        #expect(ready.last == 8)
    }

    @Test func `a failure of one server says nothing about the next one`() {
        restore(large(5) + "?", at: 7)
        restore("{\"count\":6}", at: 8)
        setup.workBehind()
        #expect(!isStopped)
        #expect(ready.last == 8)
    }

    @Test func `entries kept aside after one snapshot are not given to a store with another`() {
        var aside = AsideEntries(name, life: SequenceNumber(2), after: SequenceNumber(7))
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .store(name), schemaVersion: 1, coding: .json),
            payload: Array("{\"countOn\":{\"upTo\":10}}".utf8))
        aside.add(
            Commit(
                log: setup.log, epoch: Epoch(1), predecessor: Epoch(1), first: SequenceNumber(9),
                count: 1, timestamp: Timestamp(0),
                blocks: [.batch(Incarnation(9), builder.finish(firstCounter: 1, settled: 0))]))
        restore(large(5), at: 7, aside: aside.bytes[...])
        restore("{\"count\":6}", at: 8)
        setup.workBehind()
        #expect(setup.store.computed.count == 6)
        #expect(setup.applier.place(of: name)?.position == SequenceNumber(8))
    }

    // MARK: Entries that arrive while the snapshot is decoded

    private func begin(_ json: String, at sequence: UInt64) {
        restore(json, at: sequence)
        setup.deliver(.begin(.store(name)))
    }

    @Test func `they are applied after it, in order`() throws {
        begin(large(5), at: 7)
        catchUp(countingOn: 6, at: 8, 2)
        catchUp(countingOn: 8, at: 10, 3)
        workPosted()
        setup.deliver(.attach(.store(name)))
        #expect(setup.store.computed.count == 0)
        let place = try #require(setup.applier.place(of: name))
        #expect(place.isAttached && !place.hasBegun && !place.hasCaughtUp)
        #expect(try !setup.progress(of: name).hasReached(SequenceNumber(7), SequenceNumber(12)))
        setup.workBehind()
        // Without the snapshot, or in another order, more of them would count.
        #expect(setup.store.computed.count == 8)
        #expect(setup.applier.place(of: name)?.hasCaughtUp == true)
        let progress = try setup.progress(of: name)
        #expect(progress.hasReached(SequenceNumber(12), SequenceNumber(12)))
        #expect(!progress.effect(of: SequenceNumber(8)).isRefused)
        #expect(progress.effect(of: SequenceNumber(9)).isRefused)
    }

    @Test func `they enter the lane a few at a time, and later ones behind them`() {
        begin(large(5), at: 7)
        for sequence in 8...10 as ClosedRange<UInt64> { catchUp(countingOn: 100, at: sequence) }
        workPosted()
        for body in takeBackground() { body() }
        var counts: [Int] = []
        while case let jobs = setup.takePosted(), !jobs.isEmpty {
            for job in jobs { setup.applier.perform(job) }
            if counts.isEmpty { catchUp(countingOn: 9, at: 11) }
            counts.append(setup.store.computed.count)
        }
        #expect(counts.first == 5)
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $1 - $0 <= 1 })
        #expect(counts.last == 9)
    }

    @Test func `a state that is copied after them has them`() throws {
        begin(large(5), at: 7)
        catchUp(countingOn: 100, at: 8)
        let point = Commit(
            log: setup.log, epoch: Epoch(1), predecessor: Epoch(1), first: SequenceNumber(9),
            count: 1, timestamp: Timestamp(0),
            blocks: [.event(.digestPoint(name, life: SequenceNumber(2)))])
        setup.deliver(.catchUp(point, byteCount: 100, to: [.store(name)]))
        catchUp(countingOn: 100, at: 10)
        workPosted()
        setup.workBehind()
        setup.workBehind()
        let votes = setup.reports.compactMap {
            if case .digested(let vote) = $0 { vote } else { nil }
        }
        #expect(votes.map(\.place.sequence) == [SequenceNumber(9)])
        #expect(votes.first?.digest == Digest(of: Array(ApplierSetup.state(6).bytes)))
    }

    @Test func `they change nothing if it can't be decoded`() throws {
        begin(large(5) + "?", at: 7)
        catchUp(countingOn: 100, at: 8)
        workPosted()
        setup.deliver(.attach(.store(name)))
        setup.workBehind()
        #expect(isStopped)
        #expect(setup.store.computed.count == 0)
        // Nothing waits for the store any more.
        #expect(try setup.progress(of: name).hasReached(SequenceNumber(8), SequenceNumber(8)))
    }

    @Test func `they don't change a newer snapshot`() {
        begin(large(5), at: 7)
        catchUp(countingOn: 100, at: 8)
        workPosted()
        begin("{\"count\":6}", at: 9)
        setup.workBehind()
        #expect(setup.store.computed.count == 6)
    }

    @Test func `nothing of a lost history is installed`() {
        begin(large(5), at: 7)
        catchUp(countingOn: 100, at: 8)
        workPosted()
        setup.deliver(.reset)
        setup.workBehind()
        #expect(setup.store.computed.count == 0)
        #expect(setup.applier.place(of: name)?.hasBegun == false)
    }

    @Test(arguments: [
        ApplyJob.unregister(.store(StoreName(state: Name("tally")!, instance: .shared))),
        .deliver(.reset, log: LogID(high: 1, low: 1), epoch: Epoch(1)),
    ])
    func `a store that is closed, or has lost its history, gets no more of them`(
        _ job: ApplyJob
    ) {
        begin(large(5), at: 7)
        for sequence in 8...10 as ClosedRange<UInt64> { catchUp(countingOn: 100, at: sequence) }
        workPosted()
        for body in takeBackground() { body() }
        for job in setup.takePosted() { setup.applier.perform(job) }
        #expect(setup.store.computed.count == 5)
        setup.applier.perform(job)
        workPosted()
        #expect(setup.store.computed.count == 5)
    }
}

extension Effect {
    fileprivate var isRefused: Bool { if case .refused = self { true } else { false } }
}
