import Conflux
import Dispatch
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// A store whose executor is not running, beside a store whose executor is.
struct SlowStoreTests {
    private let setup: ApplierSetup
    private let quick = StoreName(state: Name("tally")!, instance: .shared)
    private let slow = StoreName(state: Name("tally")!, instance: Name("slow")!)
    private let queue = DispatchQueue(label: "conflux.tests.slow-store")
    private let store: Store<TallyState>

    init() throws {
        setup = try ApplierSetup(openBytesMax: 400, waitingOutcomesMax: 40, sliceBytesMax: 50)
        store = setup.register(slow, executor: .queue(queue))
        setup.restore(slow, life: SequenceNumber(2), ApplierSetup.state(0))
        queue.sync {}
        setup.workBehind()
        setup.deliver(.begin(.store(slow)))
        setup.deliver(.attach(.store(slow)))
    }

    /// Orders and delivers one batch of this node, with an action for each target.
    ///
    /// - Returns: The handles of the actions.
    private func dispatch(_ targets: [Target], at sequence: UInt64, counter: UInt64)
        -> [DispatchHandle]
    {
        let block = OutcomeBlock()
        for _ in targets { _ = block.reserve() }
        setup.applier.perform(
            .submitted(
                SubmittedBatch(
                    firstCounter: counter, count: targets.count, block: block,
                    spans: targets.map { SubmittedBatch.Span(target: $0, count: 1) })))
        var builder = BatchBuilder()
        for target in targets {
            builder.append(
                target: BatchTarget(target: target, schemaVersion: 1, coding: .json),
                payload: Array("{\"add\":{\"_0\":1}}".utf8))
        }
        let batch = builder.finish(firstCounter: counter, settled: 0)
        let first = SequenceNumber(sequence)
        setup.deliver(
            .commit(
                Commit(
                    log: setup.log, epoch: Epoch(1), predecessor: Epoch(1), first: first,
                    count: UInt32(targets.count), timestamp: Timestamp(0),
                    blocks: [.batch(setup.own, batch)]), byteCount: 100))
        setup.settle(
            counter, targets.count, .committed(setup.log, first, Epoch(1), Timestamp(0)))
        return targets.indices.map { DispatchHandle(block: block, index: $0) }
    }

    @Test func `a store whose executor is stopped delays no receipt of another`() throws {
        queue.suspend()
        let handles = dispatch([.store(slow), .store(quick)], at: 3, counter: 1)
        #expect(handles[0].outcome == nil)
        guard case .committed? = handles[1].outcome else {
            Issue.record("\(String(describing: handles[1].outcome))")
            queue.resume()
            return
        }
        // An action for both stores waits for both. One after it waits only for its own store.
        let both = dispatch([.state(slow.state), .store(quick)], at: 5, counter: 3)
        #expect(both[0].outcome == nil)
        queue.resume()
        queue.sync {}
        setup.workBehind()
        for handle in handles + both {
            guard case .committed? = handle.outcome else {
                Issue.record("\(String(describing: handle.outcome))")
                continue
            }
        }
    }

    @Test func `outcomes that wait for a parked store are bounded, and others are reported`() throws
    {
        queue.suspend()
        defer { queue.resume() }
        var handles: [DispatchHandle] = []
        for number in 0..<60 as Range<UInt64> {
            let sent = dispatch(
                [.store(slow), .store(quick)], at: 3 + 2 * number, counter: 1 + 2 * number)
            handles.append(sent[0])
            guard case .committed? = sent[1].outcome else {
                Issue.record("\(String(describing: sent[1].outcome))")
                return
            }
            #expect(setup.applier.waitingOutcomeCount <= 21)
        }
        // It is in the log, but its effect in this node is not known.
        guard case .failed(let error)? = handles[0].outcome else {
            Issue.record("\(String(describing: handles[0].outcome))")
            return
        }
        #expect(error.code == .effectUnknown && error.receipt?.sequence == SequenceNumber(3))
    }

    @Test func `a store that is too slow is parked, and continues from where it was`() throws {
        queue.suspend()
        var sequence: UInt64 = 3
        var parked: Bool {
            setup.reports.contains { if case .parked = $0 { true } else { false } }
        }
        while !parked, sequence < 20 {
            _ = dispatch([.store(slow)], at: sequence, counter: sequence - 2)
            sequence += 1
        }
        try #require(parked)
        let last = SequenceNumber(sequence - 1)
        // The store gets no more. It neither takes up credit nor holds back the node's progress.
        let late = dispatch([.store(slow)], at: sequence, counter: sequence - 2)
        #expect(setup.applier.progress.liveBytes == 100 * Int(sequence - 2))
        #expect(setup.applier.progress.applied == last.next)
        queue.resume()
        queue.sync {}
        setup.workBehind()
        #expect(store.computed.count == Int(sequence - 3))
        guard case .ready(.store(slow), through: last, _)? = setup.reports.last else {
            Issue.record("\(setup.reports)")
            return
        }
        #expect(late[0].outcome == nil)
        setup.deliver(.begin(.store(slow)))
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .store(slow), schemaVersion: 1, coding: .json),
            payload: Array("{\"add\":{\"_0\":1}}".utf8))
        let batch = builder.finish(firstCounter: sequence - 2, settled: 0)
        setup.deliver(
            .catchUp(
                Commit(
                    log: setup.log, epoch: Epoch(1), predecessor: Epoch(1), first: last.next,
                    count: 1, timestamp: Timestamp(0), blocks: [.batch(setup.own, batch)]),
                byteCount: 100, to: [.store(slow)]))
        setup.deliver(.attach(.store(slow)))
        queue.sync {}
        setup.workBehind()
        #expect(store.computed.count == Int(sequence - 2))
        guard case .committed? = late[0].outcome else {
            Issue.record("\(String(describing: late[0].outcome))")
            return
        }
    }

    @Test func `a store that catches up gets a few entries at a time, after other work`()
        throws
    {
        let late = StoreName(state: slow.state, instance: try #require(Name("late")))
        let lateStore = setup.register(late)
        setup.restore(late, life: SequenceNumber(2), ApplierSetup.state(0))
        var builder = BatchBuilder()
        for _ in 0..<12 {
            builder.append(
                target: BatchTarget(target: .store(late), schemaVersion: 1, coding: .json),
                payload: Array("{\"add\":{\"_0\":1}}".utf8))
        }
        let batch = builder.finish(firstCounter: 1, settled: 0)
        setup.deliver(
            .catchUp(
                Commit(
                    log: setup.log, epoch: Epoch(1), predecessor: Epoch(1),
                    first: SequenceNumber(3), count: 12, timestamp: Timestamp(0),
                    blocks: [.batch(Incarnation(9), batch)]), byteCount: 300, to: [.store(late)]))
        setup.applier.perform(.goOn)
        let given = lateStore.computed.count
        #expect(0 < given && given < 12)
        #expect(setup.applier.progress.catchUpBytes == 0)
        // An entry for another store doesn't wait for the rest.
        let handle = dispatch([.store(quick)], at: 15, counter: 1)[0]
        #expect(lateStore.computed.count == given)
        guard case .committed? = handle.outcome else {
            Issue.record("\(String(describing: handle.outcome))")
            return
        }
        // An entry for the store itself comes after the rest.
        setup.deliver(.attach(.store(late)))
        #expect(lateStore.computed.count == 12)
        #expect(setup.applier.progress.catchUpBytes == 300)
        setup.workBehind()
        #expect(lateStore.computed.count == 12)
    }

    @Test func `a store that catches up gets several small commits in a turn`() throws {
        let late = StoreName(state: slow.state, instance: try #require(Name("late")))
        let lateStore = setup.register(late)
        setup.restore(late, life: SequenceNumber(2), ApplierSetup.state(0))
        for sequence in UInt64(3)..<11 {
            var builder = BatchBuilder()
            builder.append(
                target: BatchTarget(target: .store(late), schemaVersion: 1, coding: .json),
                payload: Array("{\"add\":{\"_0\":1}}".utf8))
            let batch = builder.finish(firstCounter: sequence, settled: 0)
            setup.deliver(
                .catchUp(
                    Commit(
                        log: setup.log, epoch: Epoch(1), predecessor: Epoch(1),
                        first: SequenceNumber(sequence), count: 1, timestamp: Timestamp(0),
                        blocks: [.batch(Incarnation(9), batch)]), byteCount: 20,
                    to: [.store(late)]))
        }
        // A turn has 50 bytes here.
        setup.applier.perform(.goOn)
        #expect(lateStore.computed.count == 2)
        setup.applier.perform(.goOn)
        #expect(lateStore.computed.count == 4)
        setup.workBehind()
        #expect(lateStore.computed.count == 8)
    }
}
