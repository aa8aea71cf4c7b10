import ConfluxNode
import ConfluxProtocol
import ConfluxSequencer
import Testing

@testable import Conflux

/// Withdrawals of dispatched actions (rule 12).
struct WithdrawalTests {
    @Test func `an action that is already ordered yields its receipt`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(TallyState.self)
            let handle = store.actions.dispatch(.add(1))
            let receipt = try await handle.receipt()
            let withdrawn = try await withDeadline { try await handle.withdraw() }
            #expect(withdrawn == receipt)
            #expect(store.computed.count == 1)
            await node.close()
        }
    }

    @Test func `a refused action is reported as refused, with its receipt`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(TallyState.self)
            let handle = store.actions.dispatch(.fail)
            _ = await #expect(throws: DispatchError.self) { try await handle.receipt() }
            let error = await #expect(throws: DispatchError.self) { try await handle.withdraw() }
            #expect(error?.code == .refused && error?.receipt != nil)
            await node.close()
        }
    }

    @Test func `unsent actions are withdrawn at once, and never applied`() async throws {
        try await withAddress { address in
            let first = try World(bind: address)
            let node = try await Node.connect(
                to: address, settings: NodeSettings(), scope: Scope())
            let store = try await node.store(TallyState.self)
            let events = node.events
            await first.sequencer.stop()
            _ = try await ConfluxNodeTests.first(of: events) { $0 == .disconnected }
            let before = store.actions.dispatch(.add(1))
            let handle = store.actions.dispatch(.add(10))
            let after = store.actions.dispatch(.add(100))
            // No sequencer is running that could answer.
            let receipt = try await withDeadline { try await handle.withdraw() }
            #expect(receipt == nil)
            let error = await #expect(throws: DispatchError.self) { try await handle.receipt() }
            #expect(error?.code == .withdrawn)

            let second = try World(bind: address)
            // It has another log: the store is created again, and actions for its former life are
            // rejected. What matters is that the neighbours have outcomes of their own.
            for neighbour in [before, after] {
                let outcome = await Self.code(of: neighbour)
                #expect(outcome != .withdrawn)
            }
            #expect(store.computed.count % 100 < 10)
            await node.close()
            await second.sequencer.stop()
        }
    }

    @Test func `each of many actions withdrawn at once is in the log or is not`()
        async throws
    {
        try await withWorld { world in
            let node = try await world.node()
            let other = try await world.node()
            let store = try await node.store(Journal.self)
            let witness = try await other.store(Journal.self)
            let handles = (0..<400).map { store.dispatch(.write("\($0)")) }
            let withdrawn = try await withDeadline {
                try await withThrowingTaskGroup(of: (Int, Bool).self) { group in
                    for index in stride(from: 0, to: handles.count, by: 2) {
                        group.addTask { (index, try await handles[index].withdraw() == nil) }
                    }
                    return try await group.reduce(into: Set<Int>()) { set, result in
                        if result.1 { set.insert(result.0) }
                    }
                }
            }
            for (index, handle) in handles.enumerated() where !withdrawn.contains(index) {
                try await handle.receipt()
            }
            let last = try await store.dispatch(.write("end")).receipt()
            _ = last
            try await wait(for: witness) { $0.lines.last == "end" }
            let expected = (0..<handles.count).filter { !withdrawn.contains($0) }.map { "\($0)" }
            #expect(witness.lines == expected + ["end"])
            #expect(store.lines == witness.lines)
            await node.close()
            await other.close()
        }
    }

    @Test func `without a node a withdrawal gives the receipt that there is`() async throws {
        let store = Scope().run {
            Store<TallyState>(
                state: TallyState(), mutations: TallyMutations(), executor: .immediate)
        }
        let handle = store.actions.dispatch(.add(1))
        let receipt = try await handle.withdraw()
        #expect(receipt?.sequence == SequenceNumber(1))
        #expect(store.computed.count == 1)
    }

    @Test func `cancelling a withdrawal ends the wait`() async throws {
        try await withWorld { world in
            let node = try await world.node()
            let store = try await node.store(TallyState.self)
            await world.sequencer.stop()
            let handle = store.actions.dispatch(.add(1))
            let task = Task { try await handle.withdraw() }
            task.cancel()
            do {
                // The action had not been sent yet, or the wait ended.
                #expect(try await task.value == nil)
            } catch let error as DispatchError {
                #expect(error.code == .cancelled)
            }
            await node.close()
        }
    }

    private static func code(of handle: DispatchHandle) async -> DispatchError.Code? {
        do throws(DispatchError) {
            try await handle.receipt()
            return nil
        } catch {
            return error.code
        }
    }
}
