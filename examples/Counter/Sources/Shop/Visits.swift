import Conflux

/// Who came: a state as a class, in the roles of a Flux library.
public final class VisitState: ReplicatedState {
    /// What can happen.
    public enum Action: Codable, Sendable, Equatable {
        /// Somebody came in.
        case enter
        /// Somebody left.
        case leave
    }

    /// How that changes the state.
    public typealias Mutations = VisitMutations

    /// All of the state, as a value: what a late worker gets.
    public struct Snapshot: Codable, Sendable, Equatable {
        /// Who is inside.
        public var inside: Int
        /// Who was ever inside.
        public var total: Int
    }

    /// The same in every process.
    public static let name = "visits"
    /// Commits the actions.
    public static var mutations: VisitMutations { VisitMutations() }

    fileprivate let inside = Variable(0)
    fileprivate let total = Variable(0)

    /// An empty shop.
    public init() {}

    /// All of the state.
    public var snapshot: Snapshot {
        get { Snapshot(inside: inside.value, total: total.value) }
        set {
            inside.value = newValue.inside
            total.value = newValue.total
        }
    }
}

/// Changes the state; nothing else does.
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
    /// Somebody came in.
    public func enter() { dispatch(action: .enter) }

    /// Somebody left.
    public func leave() { dispatch(action: .leave) }
}

extension Computed where State == VisitState {
    /// Who is inside now.
    public var inside: Int { state.inside.value }

    /// Who is inside, now and from now on.
    public var insideValues: Signal<Int> { state.inside.signal }
}
