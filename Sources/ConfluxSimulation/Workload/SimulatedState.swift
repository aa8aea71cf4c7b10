import Conflux
import ConfluxNode

/// A state that simulated nodes host, and the actions that they dispatch.
///
/// ```swift
/// let stock = SimulatedState.model(Stock.self) { random in
///     random.chance(0.5) ? .add(amount: random.int(in: 1...9)) : .take(amount: 3)
/// }
/// ```
public struct SimulatedState: Sendable {
    /// The process that dispatches an action, and the action's index in that process.
    public struct Place: Sendable {
        /// The process; each start has a new number.
        public let process: Int
        /// 0, 1, 2 … within the process.
        public let index: Int
    }

    let name: Name
    /// The instances that nodes host.
    let stores: [StoreName]
    let host: @Sendable (StoreName, Scope, Outbox, SimulatedExecutor?) -> any SimulatedStore
    let bridge: @Sendable (Scope, Outbox) -> any SimulatedBridge
    /// Dispatches an action to one store, or to all stores of the state, from a process that hosts none.
    let submit: @Sendable (StoreName?, Outbox, Place, inout SimulationRandom) -> DispatchHandle
    let makeReference: @Sendable (StoreName) -> any ReferenceStore
    let schemaVersion: UInt32
    let oldestVersion: UInt32
    /// Whether the simulator draws actions for it. Otherwise only programs dispatch to it.
    let isDriven: Bool
    /// The same state in the newer programs, in the order in which they are released.
    var newer: [SimulatedState] = []
    /// Changes an encoding the way a nondeterministic reducer might; nil for a state that is never corrupted.
    var corrupt: (@Sendable ([UInt8]) -> [UInt8])?

    /// The reference for a store of a schema version; nil if no program knows that version.
    func reference(_ store: StoreName, version: UInt32) -> (any ReferenceStore)? {
        ([self] + newer).first { $0.schemaVersion == version }?.makeReference(store)
    }

    /// A state that is a class.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - instances: How many stores of it there are.
    ///   - action: Draws an action.
    /// - Returns: The state for a ``Simulation``.
    public static func replicated<S: ReplicatedState>(
        _ state: S.Type, instances: Int = 2,
        action: @escaping @Sendable (Place, inout SimulationRandom) -> S.Action
    ) -> SimulatedState {
        make(state, instances: instances, invariant: nil) { action($0, &$2) }
    }

    /// A state that is a value.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - instances: How many stores of it there are.
    ///   - invariant: Says what is wrong with a model, and nil if nothing is. It is asked after each entry, in the order of
    ///     the log. A fault is a violation of the promise `program`, which names the store, the entry and the action.
    ///   - action: Draws an action.
    /// - Returns: The state for a ``Simulation``.
    public static func model<M: Model>(
        _ model: M.Type, instances: Int = 2, invariant: (@Sendable (M) -> String?)? = nil,
        action: @escaping @Sendable (inout SimulationRandom) -> M.Action
    ) -> SimulatedState {
        self.model(model, instances: instances, invariant: invariant) { random, _ in
            action(&random)
        }
    }

    /// A state that is a value, whose actions depend on the present one.
    ///
    /// ```swift
    /// let orders = SimulatedState.model(Orders.self) { random, orders in
    ///     orders.open.isEmpty ? .place(random.int(in: 1...9)) : .confirm(random.pick(orders.open))
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - instances: How many stores of it there are.
    ///   - invariant: Says what is wrong with a model, and nil if nothing is.
    ///   - action: Draws an action for the model as the dispatching process has it. When the action is applied, the model
    ///     may be another one. A process that hosts no store of it sees the model as it is at first.
    /// - Returns: The state for a ``Simulation``.
    public static func model<M: Model>(
        _ model: M.Type, instances: Int = 2, invariant: (@Sendable (M) -> String?)? = nil,
        action: @escaping @Sendable (inout SimulationRandom, M) -> M.Action
    ) -> SimulatedState {
        make(ModelState<M>.self, instances: instances, invariant: judge(by: invariant)) {
            _, store, random in action(&random, store?.value ?? M())
        }
    }

    /// A state that is a value, to which only a ``SimulatedProgram`` dispatches.
    ///
    /// - Parameters:
    ///   - model: The model.
    ///   - instances: How many stores of it there are.
    ///   - invariant: Says what is wrong with a model, and nil if nothing is.
    /// - Returns: The state for a ``Simulation``.
    public static func model<M: Model>(
        _ model: M.Type, instances: Int = 1, invariant: (@Sendable (M) -> String?)? = nil
    ) -> SimulatedState {
        make(
            ModelState<M>.self, instances: instances, invariant: judge(by: invariant), action: nil)
    }

    private static func judge<M: Model>(
        by invariant: (@Sendable (M) -> String?)?
    ) -> (@Sendable (ModelState<M>) -> String?)? {
        guard let invariant else { return nil }
        return { invariant($0.snapshot) }
    }

    private static func make<S: ReplicatedState>(
        _ state: S.Type, instances: Int, invariant: (@Sendable (S) -> String?)?,
        action draw: TypedSimulatedStore<S>.Draw?
    ) -> SimulatedState {
        let action = draw ?? { _, _, _ in preconditionFailure("\(S.self) has no actions to draw") }
        guard let name = Name(S.name) else {
            preconditionFailure("\(S.self).name must match [a-z0-9._-]{1,64}, and is \(S.name)")
        }
        let stores = (0..<max(1, instances)).compactMap { number in
            number == 0
                ? StoreName(state: name, instance: .shared)
                : StoreName("\(name)/\(number)")
        }
        return SimulatedState(
            name: name, stores: stores,
            host: { TypedSimulatedStore<S>($0, scope: $1, outbox: $2, late: $3, action: action) },
            bridge: { TypedSimulatedBridge<S>(name, scope: $0, outbox: $1, action: action) },
            submit: { store, outbox, place, random in
                OutboxRoute<S>(
                    outbox: outbox, target: store.map { .store($0) } ?? .state(name)
                ).submit(action(place, nil, &random), mayWait: false)
            },
            makeReference: { TypedReferenceStore<S>($0, invariant: invariant) },
            schemaVersion: UInt32(S.schemaVersion), oldestVersion: UInt32(S.oldestSchemaVersion),
            isDriven: draw != nil)
    }
}
