import Conflux
import Synchronization
import Testing

/// Dispatches from inside a commit, and dispatches beside a node's deliveries.
@Suite(.timeLimit(.minutes(5)))
struct NestedFlowTests {
    let scope = Scope()

    private func storages() -> (Storage<Int>, Storage<Int>) {
        scope.run { (Storage(0), Storage(0)) }
    }

    @Test func `a chain that an observer resolves is committed once, after the commit`()
        async throws
    {
        let (first, second) = storages()
        let values = Mutex<[Int]>([])
        let handle = Late<DispatchHandle>()
        let observation = first.changed(\.self).observe { value in
            values.withLock { $0.append(value) }
            guard value == 1 else { return }
            handle.value = scope.chain()
                .change(first) { $0.replace($0.value + 10) }
                .change(second) { $0.replace($0.value + 100) }
                .react()
            // The commit that notified this observer comes first.
            #expect(first.value == 1)
        }
        first.replace(1)
        try await #require(handle.value).receipt()
        #expect(first.value == 11 && second.value == 100)
        #expect(values.withLock { $0 } == [0, 1, 11])
        observation.dispose()
    }

    @Test func `a chain begun inside a storage's function runs after that function`() async throws {
        let (first, second) = storages()
        let handle = Late<DispatchHandle>()
        first.commit { draft in
            handle.value = scope.chain()
                .change(first) { $0.replace($0.value * 2) }
                .change(second) { $0.replace(7) }
                .react()
            draft.replace(4)
        }
        try await #require(handle.value).receipt()
        #expect(first.value == 8 && second.value == 7)
    }

    @Test func `a node's actions don't wait for the stores that their store waits for`() throws {
        let held = HeldExecutor()
        let (waiting, first) = scope.run {
            (
                Store(state: TallyState(), mutations: TallyMutations(), executor: .immediate),
                Store(state: TallyState(), mutations: TallyMutations(), executor: held.executor)
            )
        }
        let order = try scope.order(waiting, after: first)
        first.actions.dispatch(action: 1)
        let action = OrderedAction<TallyState>(
            action: 2, context: ActionContext(sequence: SequenceNumber(1)))
        let report = Late<RunReport>()
        waiting.core.deliver([action]) { report.value = $0 }
        #expect(report.value?.completed == 1)
        #expect(waiting.computed.numbers == [2])
        // A dispatch of this process waits.
        waiting.actions.dispatch(action: 3)
        #expect(waiting.computed.numbers == [2])
        held.runAll()
        #expect(waiting.computed.numbers == [2, 3])
        order.dispose()
    }
}
