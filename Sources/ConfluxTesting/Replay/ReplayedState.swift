import Conflux
import ConfluxNode

/// A state whose stores a replay runs.
///
/// ```swift
/// let report = try replay("history", with: .model(Stock.self), .replicated(Counter.self))
/// ```
public struct ReplayedState: Sendable {
    let state: ReplayableState

    /// A state that is a value.
    public static func model<Model: Conflux.Model>(_ model: Model.Type) -> ReplayedState {
        replicated(ModelState<Model>.self)
    }

    /// A state that is a class.
    public static func replicated<State: ReplicatedState>(_ state: State.Type) -> ReplayedState {
        ReplayedState(state: ReplayableState(state))
    }
}
