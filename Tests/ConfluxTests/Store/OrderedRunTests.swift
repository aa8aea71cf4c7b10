import Conflux
import Synchronization
import Testing

/// What a run keeps, and what it frees.
struct OrderedRunTests {
    /// An action that counts its living instances.
    private final class Counted: Sendable {
        static let alive = Mutex(0)
        let number: UInt64

        init(_ number: UInt64) {
            self.number = number
            Self.alive.withLock { $0 += 1 }
        }

        deinit { Self.alive.withLock { $0 -= 1 } }
    }

    private final class CountedState: State {
        typealias Action = Counted
        var told: [UInt64] = []

        struct Mutations: Conflux.Mutations {
            func commit(action: Counted, state: CountedState) { state.told.append(action.number) }
        }
    }

    private func run(_ numbers: ClosedRange<UInt64>) -> OrderedRun<CountedState> {
        let run = OrderedRun<CountedState>(capacity: 2)
        for number in numbers {
            run.append(Counted(number), ActionContext(sequence: SequenceNumber(number)))
        }
        return run
    }

    @Test func `a run gives each action once, whether it is taken, cleared or dropped`() {
        let scope = Scope()
        let state = CountedState()
        let store = scope.run {
            Store<CountedState>(state: state, mutations: .init(), executor: .immediate)
        }
        do {
            let taken = run(1...100)
            store.core.deliver(taken) { #expect($0.completed == 100) }
            #expect(state.told == Array(1...100))
            #expect(Counted.alive.withLock { $0 } == 0)
            taken.clear()
            taken.append(Counted(101), ActionContext(sequence: SequenceNumber(101)))
            // Actions that the store already has are skipped, and freed as well.
            store.core.deliver(run(50...60)) { #expect($0.completed == 11) }
            store.core.deliver(taken) { _ in }
            #expect(state.told.count == 101)
            _ = run(200...210)
            let cleared = run(300...310)
            cleared.clear()
        }
        #expect(Counted.alive.withLock { $0 } == 0)
    }
}
