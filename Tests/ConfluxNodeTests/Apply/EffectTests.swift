import Conflux
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// A node's answers to questions about the outcome of an entry.
struct EffectTests {
    private let setup: ApplierSetup
    private let name = StoreName(state: Name("tally")!, instance: .shared)
    private let state = EncodedState(coding: .json, bytes: Array("{\"count\":0}".utf8)[...])

    init() throws {
        setup = try ApplierSetup()
    }

    /// Another node's action for the store, as the third entry.
    private var commit: Commit {
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .store(name), schemaVersion: 1, coding: .json),
            payload: Array("{\"add\":{\"_0\":1}}".utf8))
        let batch = builder.finish(firstCounter: 1, settled: 0)
        return Commit(
            log: setup.log, epoch: Epoch(1), predecessor: Epoch(1), first: SequenceNumber(3),
            count: 1, timestamp: Timestamp(0), blocks: [.batch(Incarnation(1), batch)])
    }

    private func restore(_ store: StoreName, at number: UInt64) {
        setup.restore(store, life: SequenceNumber(number), state)
    }

    /// Asks for the outcome of the entry in a store.
    private func ask(_ store: StoreName) {
        let body = Question.Body.applied(commit.first, .store(store))
        setup.applier.perform(
            .asked(Question(number: 7, patience: .seconds(1), body: body)))
    }

    private var answers: [Answer.Body] {
        setup.told.inputs.withLock { inputs in
            inputs.compactMap { if case .answer(let answer) = $0 { answer.body } else { nil } }
        }
    }

    @Test func `outcomes are reported once a store has caught up, even without further entries`() {
        // The store was created before the entry.
        restore(name, at: 2)
        setup.deliver(.catchUp(commit, byteCount: 100, to: [.store(name)]))
        setup.workBehind()
        ask(name)
        #expect(setup.store.computed.count == 1)
        #expect(answers == [.applied])
    }

    @Test func `opening a store makes no outcome of another store unknown`() throws {
        setup.deliver(.commit(commit, byteCount: 100))
        let other = StoreName(state: name.state, instance: try #require(Name("other")))
        let store = setup.register(other)
        defer { withExtendedLifetime(store) {} }
        setup.deliver(
            .restore(
                other, life: SequenceNumber(2),
                Snapshot(sequence: SequenceNumber(4), schemaVersion: 1, state: state),
                in: VersionInForce(1), aside: nil, skipped: [], through: SequenceNumber(4),
                request: 9))
        setup.deliver(.begin(.store(other)))
        setup.deliver(.attach(.store(other)))
        ask(name)
        #expect(answers == [.applied])
        ask(other)
        guard case .failed(.effectUnknown, _)? = answers.last else {
            Issue.record("\(answers)")
            return
        }
    }

    /// "It concerned nobody" means that it may be dispatched again. So a node says it only of what it would know.
    @Test func `what became of an entry in a store that is gone, or is another one, is not known`()
        throws
    {
        setup.deliver(.commit(commit, byteCount: 100))
        let other = StoreName(state: name.state, instance: try #require(Name("other")))
        ask(other)
        guard case .failed(.notHosted, _)? = answers.last else {
            Issue.record("\(answers)")
            return
        }
        setup.restore(name, life: SequenceNumber(4), state)
        setup.deliver(.attach(.store(name)))
        ask(name)
        guard case .failed(.effectUnknown, _)? = answers.last else {
            Issue.record("\(answers)")
            return
        }
    }
}
