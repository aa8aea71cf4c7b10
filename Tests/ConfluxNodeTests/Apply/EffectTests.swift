import Conflux
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// What a node says when somebody asks what became of an entry.
struct EffectTests {
    @Test func `what a store has caught up with is told, though nothing comes behind it`()
        throws
    {
        let setup = try ApplierSetup()
        let name = StoreName(state: try #require(Name("tally")), instance: .shared)
        let state = EncodedState(coding: .json, bytes: Array("{\"count\":0}".utf8)[...])
        // It was opened behind the entry.
        setup.deliver(
            .restore(
                name, life: SequenceNumber(2),
                Snapshot(sequence: SequenceNumber(2), state: state)))
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .store(name), schemaVersion: 1, coding: .json),
            payload: Array("{\"add\":{\"_0\":1}}".utf8))
        setup.deliver(
            .catchUp(
                Commit(
                    log: setup.log, epoch: Epoch(1), predecessor: Epoch(1),
                    first: SequenceNumber(3), count: 1, timestamp: Timestamp(0),
                    blocks: [
                        .batch(
                            Incarnation(1), builder.finish(firstCounter: 1, settled: 0))
                    ]), byteCount: 100))
        setup.applier.perform(
            .asked(
                Question(
                    number: 7, patience: .seconds(1),
                    body: .applied(SequenceNumber(3), .store(name)))))
        var answers: [Answer.Body] {
            setup.told.inputs.withLock { inputs in
                inputs.compactMap { if case .answer(let answer) = $0 { answer.body } else { nil } }
            }
        }
        #expect(answers.isEmpty)
        setup.deliver(.attach(name))
        #expect(setup.store.computed.count == 1)
        #expect(answers == [.applied])
    }
}
