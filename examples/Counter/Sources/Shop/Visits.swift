import Conflux

/// The visitors: a state that is a class, in the roles of a Flux library.
public final class VisitState: ReplicatedState {
    /// What can happen.
    public enum Action: Codable, Sendable, Equatable {
        /// Somebody enters.
        case enter
        /// Somebody leaves.
        case leave
    }

    /// The type that changes the state.
    public typealias Mutations = VisitMutations

    /// The whole state as a value, which a late worker gets.
    public struct Snapshot: Codable, Sendable, Equatable {
        /// How many people are inside.
        public var inside: Int
        /// How many people have ever entered.
        public var total: Int
    }

    /// The state's name. It is the same in every process.
    public static let name = "visits"
    /// Commits the actions.
    public static var mutations: VisitMutations { VisitMutations() }

    fileprivate let inside = Variable(0)
    fileprivate let total = Variable(0)

    /// An empty shop.
    public init() {}

    /// The whole state.
    public var snapshot: Snapshot {
        get { Snapshot(inside: inside.value, total: total.value) }
        set {
            inside.value = newValue.inside
            total.value = newValue.total
        }
    }
}

/// Changes the state. Nothing else does.
public struct VisitMutations: Mutations {
    /// Commits one action.
    public func commit(action: VisitState.Action, state: VisitState) {
        switch action {
        case .enter:
            state.inside.value += 1
            state.total.value += 1
        case .leave:
            state.inside.value = max(0, state.inside.value - 1)
        }
    }
}

extension Actions where State == VisitState {
    /// Somebody enters.
    public func enter() { dispatch(action: .enter) }

    /// Somebody leaves.
    public func leave() { dispatch(action: .leave) }
}

extension Computed where State == VisitState {
    /// How many people are inside now.
    public var inside: Int { state.inside.value }

    /// How many people are inside, now and after each change.
    public var insideValues: Signal<Int> { state.inside.signal }
}
