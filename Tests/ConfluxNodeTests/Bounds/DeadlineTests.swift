import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Testing

@testable import ConfluxNode

/// Waits for a sequencer that does not answer: without their deadlines, they would wait for ever.
@Suite(.timeLimit(.minutes(5)))
struct DeadlineTests {
    private static let limit = Duration.milliseconds(120)

    /// How a wait ended.
    private enum End: Equatable {
        case done, late
        case failed(String)
    }

    /// Waits, and looks how that ends. It must not end before the limit.
    private func expectDeadline(
        _ name: String, ends expected: End = .late, _ wait: (Duration) async throws -> Void
    ) async {
        let begun = ContinuousClock.now
        var end = End.done
        do {
            try await wait(Self.limit)
        } catch let error as NodeError {
            end = error.code == .timedOut ? .late : .failed("\(error)")
        } catch let error as DispatchError {
            end = error.code == .timedOut ? .late : .failed("\(error)")
        } catch {
            end = .failed("\(error)")
        }
        #expect(end == expected, "\(name)")
        #expect(ContinuousClock.now - begun >= Self.limit, "\(name)")
    }

    /// A node with a store, whose sequencer ends, and a handle of an action that it sends to a store elsewhere.
    private func withoutSequencer(
        _ body: (Node, Store<TallyState>, _ elsewhere: DispatchHandle) async throws -> Void
    ) async throws {
        try await withAddress { address in
            let world = try World(bind: address)
            let host = try await world.node()
            let there = try await host.store(TallyState.self, named: "elsewhere")
            let node = try await world.node()
            let store = try await node.store(TallyState.self)
            let elsewhere = try node.actions(of: TallyState.self, named: "elsewhere")
                .dispatch(.add(1))
            try await elsewhere.receipt()
            await world.sequencer.stop()
            try await body(node, store, elsewhere)
            await host.close(within: .zero)
            await node.close(within: .zero)
            withExtendedLifetime(there) {}
        }
    }

    @Test func `waits for an action end at their deadlines`() async throws {
        try await withoutSequencer { node, store, elsewhere in
            let handle = store.actions.dispatch(.add(1))
            await expectDeadline("receipt") { try await handle.receipt(within: $0) }
            await expectDeadline("effect") { try await handle.effect(within: $0) }
            await expectDeadline("end", ends: .done) {
                #expect(await !handle.end(within: $0))
            }
            await expectDeadline("effect elsewhere") { limit in
                let error = await #expect(throws: DispatchError.self) {
                    try await elsewhere.effect(within: limit)
                }
                #expect(error?.receipt != nil)
                if let error { throw error }
            }
            #expect(await elsewhere.end(within: Self.limit))
        }
    }

    @Test func `waits of a node end at their deadlines`() async throws {
        try await withoutSequencer { node, store, elsewhere in
            let receipt = try await elsewhere.receipt()
            let other = Receipt(
                log: receipt.log, epoch: Epoch(receipt.epoch.rawValue + 1),
                sequence: receipt.sequence.advanced(by: 100), timestamp: receipt.timestamp)
            await expectDeadline("barrier") { try await node.barrier(patience: $0) }
            await expectDeadline("wait") { try await node.wait(for: other, patience: $0) }
            await expectDeadline("status") { _ = try await node.sequencerStatus(patience: $0) }
            await expectDeadline("freeze") { try await node.freeze(store, patience: $0) }
            await expectDeadline("thaw") { try await node.thaw(store, patience: $0) }
            await expectDeadline("upgrade") { try await node.upgrade(store, patience: $0) }
            await expectDeadline("drop") { try await node.drop(store, patience: $0) }
            let token = try #require(elsewhere.token)
            await expectDeadline("outcome") { _ = try await node.outcome(of: token, within: $0) }
            await expectDeadline("skip") {
                try await node.skip(receipt.sequence, for: .store(.tally), patience: $0)
            }
        }
    }

    @Test func `opening ends at its deadline, whatever its patience`() async throws {
        try await withoutSequencer { node, store, _ in
            await expectDeadline("store") {
                _ = try await node.store(TallyState.self, named: "new", within: $0)
            }
            await expectDeadline("bridge") {
                try await node.bridge(ModelState<Unknown>.self, within: $0)
            }
            await expectDeadline("replicate") { limit in
                let mine = Scope().run {
                    Store<TallyState>(
                        state: TallyState(), mutations: TallyMutations(), executor: .immediate)
                }
                try await node.replicate(mine, as: "mine", within: limit)
            }
        }
    }

    @Test func `a wait for room ends at its deadline`() async throws {
        let outbox = Outbox(bytesMax: 1, policy: .wait, wake: {})
        let target = BatchTarget(target: .store(.tally), schemaVersion: 1, coding: .json)
        _ = outbox.submit(Outbox.Destination(target), [1, 2], mayWait: false)
        await expectDeadline("room") { try await outbox.waitForRoom(within: $0) }
    }

    @Test func `closing ends at its deadline, and the actions' outcomes are unknown`() async throws
    {
        try await withoutSequencer { node, store, _ in
            let handle = store.actions.dispatch(.add(1))
            let begun = ContinuousClock.now
            await node.close(within: Self.limit)
            #expect(ContinuousClock.now - begun >= Self.limit)
            let error = await #expect(throws: DispatchError.self) { try await handle.receipt() }
            #expect([.outcomeUnknown, .notConnected].contains(error?.code))
        }
    }
}

extension StoreName {
    fileprivate static var tally: StoreName {
        StoreName(state: Name("tally")!, instance: .shared)
    }
}

/// A state that no node hosts.
private struct Unknown: Model {
    static let name = "unknown"
    enum Action: Codable, Sendable { case act }
    mutating func apply(_ action: Action, _ context: ActionContext) {}
}
