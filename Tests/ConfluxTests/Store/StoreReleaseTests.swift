import Conflux
import Dispatch
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StoreReleaseTests {
    /// A state that is changed by an observer, which dispatches to the observed store.
    final class EchoState: State, Sendable {
        typealias Action = Int
        typealias Mutations = EchoMutations

        fileprivate let number = Variable(0)
        private let witness: Witness

        init(atEnd: @escaping @Sendable () -> Void) { witness = Witness(atEnd: atEnd) }

        func stay() { witness.stay() }
    }

    struct EchoMutations: Mutations {
        func commit(action: Int, state: EchoState) { state.number.value = action }
    }

    @Test(arguments: ["immediate", "held"])
    func `a state whose observers hold its store's actions goes with the store`(place: String) {
        let held = HeldExecutor()
        let hasEnded = Late<Bool>()
        var store: Store<EchoState>? = Store(
            state: EchoState { hasEnded.value = true }, mutations: EchoMutations(),
            executor: place == "held" ? held.executor : .immediate)
        let actions = store?.actions
        store?.computed.state.number.signal.observe { number in
            if number == 1 { actions?.dispatch(action: 2) }
        }
        actions?.dispatch(action: 1)
        held.runAll()
        #expect(store?.computed.state.number.value == 2)

        store = nil
        #expect(hasEnded.value == true)
        actions?.dispatch(action: 3)
        held.runAll()
    }

    @Test func `a store with a run in progress releases its state after the run`() {
        let held = HeldExecutor()
        let hasEnded = Late<Bool>()
        var store: Store<EchoState>? = Store(
            state: EchoState { hasEnded.value = true }, mutations: EchoMutations(),
            executor: held.executor)
        let actions = store?.actions
        actions?.dispatch(action: 1)
        store = nil
        held.runAll()
        #expect(hasEnded.value == true)
    }

    @Test func `a store released inside its own commit keeps its state until that is over`() {
        let owner = Late<Store<TallyState>>()
        let isAlive = Late<Bool>()
        let ended = Late<Bool>()
        let witness = Late<Witness>()
        witness.value = Witness { ended.value = true }
        owner.value = tallyStore { [held = witness.value] _ in
            owner.value = nil
            held?.stay()
            isAlive.value = ended.value == nil
        }
        witness.value = nil
        let actions = owner.value?.actions
        actions?.tell(1)
        #expect(isAlive.value == true)
        #expect(ended.value == true)
    }

    @Test(arguments: [true, false])
    func `stores are released while threads dispatch to them`(isImmediate: Bool) async {
        let scope = Scope()
        for _ in 0..<50 {
            let ended = Late<Bool>()
            let owner = Late<Store<EchoState>>()
            owner.value = scope.run {
                Store(
                    state: EchoState { ended.value = true }, mutations: EchoMutations(),
                    executor: isImmediate ? .immediate : .queue(.global()))
            }
            let actions = owner.value?.actions
            let handles = Seen<DispatchHandle>()
            onThreads(3) { thread in
                if thread == 0 { return owner.value = nil }
                for number in 0..<50 {
                    if let handle = actions?.dispatch(number) { handles.add(handle) }
                    scope.run { Store<EchoState>.actions.dispatch(action: number) }
                }
            }
            // Every dispatch gets an outcome, of any kind.
            for handle in handles.values { _ = try? await handle.receipt() }
            awaitCondition { ended.value == true }
        }
        #expect(scope.lanes(of: EchoState.self).isEmpty)
    }
}
