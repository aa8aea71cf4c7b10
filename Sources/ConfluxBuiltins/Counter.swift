import Conflux

/// What can happen to a counter.
///
/// In JSON: `{"increment":{}}`, `{"decrement":{}}`, `{"add":{"amount":5}}`.
public enum CounterAction: Codable, Hashable, Sendable, NamedActions {
    /// Counts one up.
    case increment
    /// Counts one down.
    case decrement
    /// Adds an amount, which may be negative.
    case add(amount: Int)

    /// The names in JSON.
    public static var actionNames: [String] { ["add", "decrement", "increment"] }

    /// What the action adds to the count.
    var amount: Int {
        switch self {
        case .increment: 1
        case .decrement: -1
        case .add(let amount): amount
        }
    }
}

/// A number that is counted up and down: the state `counter`.
public final class CounterState: ReplicatedState {
    /// What can happen to it.
    public typealias Action = CounterAction
    /// How its actions change it.
    public typealias Mutations = CounterMutations

    /// All of a counter: in JSON `{"count":5}`.
    public struct Snapshot: Codable, Hashable, Sendable {
        /// The count.
        public var count: Int

        /// Makes a snapshot of a count.
        public init(count: Int) {
            self.count = count
        }
    }

    /// `counter`.
    public static let name = "counter"
    /// Commits a counter's actions.
    public static var mutations: CounterMutations { CounterMutations() }

    fileprivate let count = Variable(0)

    /// Makes a counter at 0.
    public init() {}

    /// The count. Setting it notifies the counter's observers.
    public var snapshot: Snapshot {
        get { Snapshot(count: count.value) }
        set { count.value = newValue.count }
    }
}

/// Why a counter refuses an action.
public enum CounterRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The count would not fit 64 bits.
    case overflow(count: Int, amount: Int)

    /// What would have happened, and what is possible.
    public var description: String {
        switch self {
        case .overflow(let count, let amount):
            "adding \(amount) to \(count) would leave the range from \(Int.min) to \(Int.max)"
        }
    }
}

/// Changes a counter. It refuses a change that would leave the range of 64 bits.
public struct CounterMutations: ContextMutations {
    /// Makes the mutations.
    public init() {}

    /// Refuses an overflow.
    ///
    /// - Parameters:
    ///   - action: What is to happen.
    ///   - state: The counter.
    ///   - context: Not used.
    /// - Throws: ``CounterRefusal/overflow(count:amount:)``.
    public func check(
        action: CounterAction, state: CounterState, context: ActionContext
    ) throws {
        let count = state.count.value
        guard !count.addingReportingOverflow(action.amount).overflow else {
            throw CounterRefusal.overflow(count: count, amount: action.amount)
        }
    }

    /// Counts.
    ///
    /// - Parameters:
    ///   - action: What happens. It has passed the check.
    ///   - state: The counter.
    ///   - context: Not used.
    public func commit(
        action: CounterAction, state: CounterState, context: ActionContext
    ) {
        state.count.value += action.amount
    }
}

extension Actions where State == CounterState {
    /// Counts one up.
    public func increment() { dispatch(action: .increment) }

    /// Counts one down.
    public func decrement() { dispatch(action: .decrement) }

    /// Adds an amount, which may be negative.
    public func add(amount: Int) { dispatch(action: .add(amount: amount)) }
}

extension Computed where State == CounterState {
    /// The count as it is now.
    public var count: Int { state.count.value }

    /// The present count, and each later one.
    public var counts: Signal<Int> { state.count.signal }
}

/// The store of a counter.
public typealias CounterStore = Store<CounterState>
