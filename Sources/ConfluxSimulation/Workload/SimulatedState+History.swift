import Conflux
import ConfluxNode

/// States whose actions come from production.
extension SimulatedState {
    /// The most actions that are taken from a history.
    private static let historyActionsMax = 100_000

    /// A state that is a class, with the actions of a history that `conflux log export` wrote.
    ///
    /// Each process dispatches consecutive actions of the history; where it begins depends on the process. So the seed
    /// decides everything, as with actions that are drawn.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - instances: How many stores of it there are.
    ///   - path: The file. Its first 100,000 actions of the state are used, for whatever store they were.
    /// - Returns: The state for a ``Simulation``.
    /// - Throws: An error that describes itself, if the file can't be used or has no action of the state.
    public static func replicated<S: ReplicatedState>(
        _ state: S.Type, instances: Int = 2, history path: String
    ) throws -> SimulatedState {
        let actions = try HistoryActions.read(
            of: S.self, in: path, countMax: historyActionsMax)
        return replicated(state, instances: instances) { place, _ in
            var start = SplitMix64(seed: UInt64(place.process))
            return actions[(Int(start.next() >> 33) + place.index) % actions.count]
        }
    }

    /// A state that is a value, with the actions of a history: see ``replicated(_:instances:history:)``.
    public static func model<M: Model>(
        _ model: M.Type, instances: Int = 2, history path: String
    ) throws -> SimulatedState {
        try replicated(ModelState<M>.self, instances: instances, history: path)
    }
}
