import Conflux
import Synchronization

/// A state that keeps the numbers that it is told, and calls a test's function for each.
final class TallyState: State, Sendable {
    typealias Action = Int
    typealias Mutations = TallyMutations

    fileprivate let numbers = Mutex<[Int]>([])
    fileprivate let overlaps = Mutex(0)
    fileprivate let isCommitting = Atomic(false)
    fileprivate let onCommit: @Sendable (Int) -> Void

    init(onCommit: @escaping @Sendable (Int) -> Void = { _ in }) {
        self.onCommit = onCommit
    }

    /// The numbers that it was told, in order.
    var told: [Int] { numbers.withLock { $0 } }
}

struct TallyMutations: Mutations {
    func commit(action: Int, state: TallyState) {
        let wasCommitting = state.isCommitting.exchange(true, ordering: .acquiringAndReleasing)
        if wasCommitting { state.overlaps.withLock { $0 += 1 } }
        state.onCommit(action)
        state.numbers.withLock { $0.append(action) }
        state.isCommitting.store(false, ordering: .releasing)
    }
}

extension Computed where State == TallyState {
    var numbers: [Int] { state.numbers.withLock { $0 } }
    /// How often a commit began during another one.
    var overlaps: Int { state.overlaps.withLock { $0 } }
}

extension Actions where State == TallyState {
    func tell(_ number: Int) { dispatch(action: number) }
}

func tallyStore(
    on executor: Executor = .immediate, onCommit: @escaping @Sendable (Int) -> Void = { _ in }
) -> Store<TallyState> {
    Store(state: TallyState(onCommit: onCommit), mutations: TallyMutations(), executor: executor)
}

/// A core like that of a store, in its own scope, and its state.
func tallyCore(
    on executor: Executor = .immediate, waitingMax: Int? = nil, scope: Scope = Scope(),
    onCommit: @escaping @Sendable (Int) -> Void = { _ in }
) -> (StoreCore<TallyState>, TallyState) {
    let state = TallyState(onCommit: onCommit)
    let core = StoreCore(
        state: state, mutations: TallyMutations(), executor: executor, scope: scope,
        waitingMax: waitingMax)
    return (core, state)
}

/// An executor that keeps its functions until the test runs them.
final class HeldExecutor: Sendable {
    private let held = Mutex<[@Sendable () -> Void]>([])

    var executor: Executor {
        Executor { function in self.held.withLock { $0.append(function) } }
    }

    var heldCount: Int { held.withLock { $0.count } }

    /// Runs the held functions, and those that they add, until none is left.
    func runAll() {
        while let next = held.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { next() }
    }

    /// Runs the oldest function.
    func runOne() {
        held.withLock { $0.isEmpty ? nil : $0.removeFirst() }?()
    }
}

/// A value that several closures share, and that a test sets later.
final class Late<Value: Sendable>: Sendable {
    private let content = Mutex<Value?>(nil)
    var value: Value? {
        get { content.withLock { $0 } }
        set { content.withLock { $0 = newValue } }
    }
}
