import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// A store in a simulated node, independent of the type of its state.
protocol SimulatedStore: AnyObject {
    var name: StoreName { get }

    /// Routes dispatches to the log, and says how the store is hosted.
    func open(
        request: UInt64, scope: Scope, payloadBytesMax: Int, policy: UpgradePolicy,
        completion: @escaping (Result<SequenceNumber, NodeError>) -> Void,
        lost: @escaping (NodeError) -> Void
    ) -> Registration
    /// Stops hosting: later dispatches go nowhere.
    func close(in scope: Scope)
    /// Dispatches an action, on condition that the store has not changed since the version, if there is one.
    func dispatch(
        _ place: SimulatedState.Place, _ version: StoreVersion?, _ random: inout SimulationRandom
    ) -> DispatchHandle
    /// Draws an action that is not sent: its target and its encoding.
    func entry(
        _ place: SimulatedState.Place, _ random: inout SimulationRandom
    ) -> (target: BatchTarget, payload: [UInt8])
    /// Takes part in a transaction: it is read, and gets an action if there is a place for one.
    ///
    /// - Returns: The canonical encoding of what was read; nil if the state is no value.
    func join(
        _ transaction: NodeTransaction, _ place: SimulatedState.Place?,
        _ random: inout SimulationRandom
    ) throws -> [UInt8]?
    /// The version of its state, for conditions.
    var version: StoreVersion { get }
    /// The canonical encoding of its state, as the version in force has it. Read it only while the store has no work to do.
    var encoded: [UInt8] { get }
    /// The number of the last entry that it has handled.
    var position: SequenceNumber { get }
    /// Whether it has an executor of its own, or waits for a store that has one.
    var isLate: Bool { get }
    /// The version in force.
    var schemaVersion: UInt32 { get }
    /// Corrupts its state without telling anybody.
    func corrupt(by change: ([UInt8]) -> [UInt8])
}

/// The route of a state's global actions from a simulated node.
protocol SimulatedBridge: AnyObject {
    var name: Name { get }

    func open(
        request: UInt64, scope: Scope, payloadBytesMax: Int,
        completion: @escaping (Result<SequenceNumber, NodeError>) -> Void,
        inhabited: @escaping () -> Void
    ) -> Registration
    func dispatch(_ place: SimulatedState.Place, _ random: inout SimulationRandom) -> DispatchHandle
}

final class TypedSimulatedStore<S: ReplicatedState>: SimulatedStore {
    /// Draws an action, for a store if the process hosts one.
    typealias Draw = @Sendable (SimulatedState.Place, Store<S>?, inout SimulationRandom) -> S.Action

    let name: StoreName
    private let store: Store<S>
    private let outbox: Outbox
    private let action: Draw

    /// The store's own executor; nil for the immediate one.
    private let late: SimulatedExecutor?

    init(
        _ name: StoreName, scope: Scope, outbox: Outbox, late: SimulatedExecutor?,
        action: @escaping Draw
    ) {
        self.name = name
        self.outbox = outbox
        self.action = action
        self.late = late
        store = scope.run {
            Store<S>(state: S(), mutations: S.mutations, executor: late?.executor ?? .immediate)
        }
    }

    var isLate: Bool { late != nil || !store.core.isIdle }
    var position: SequenceNumber { store.core.position }

    func open(
        request: UInt64, scope: Scope, payloadBytesMax: Int, policy: UpgradePolicy,
        completion: @escaping (Result<SequenceNumber, NodeError>) -> Void,
        lost: @escaping (NodeError) -> Void
    ) -> Registration {
        let route = OutboxRoute<S>(outbox: outbox, target: .store(name))
        store.core.setRoute(route)
        return .store(
            store.core, name, route: route,
            initial: encoding(of: S().snapshot, S.self, as: S.oldestSchemaVersion), policy: policy,
            request: request,
            scope: scope,
            payloadBytesMax: payloadBytesMax, completion: completion, lost: lost)
    }

    func close(in scope: Scope) {
        store.core.setRoute(ClosedRoute<S>(name))
        scope.channel(of: S.self).remove(store.core)
    }

    func dispatch(
        _ place: SimulatedState.Place, _ version: StoreVersion?, _ random: inout SimulationRandom
    ) -> DispatchHandle {
        let action = action(place, store, &random)
        return version.map { store.dispatch(action, ifUnchangedSince: $0) }
            ?? store.core.dispatchTracked(action)
    }

    func entry(
        _ place: SimulatedState.Place, _ random: inout SimulationRandom
    ) -> (target: BatchTarget, payload: [UInt8]) {
        let route = OutboxRoute<S>(outbox: outbox, target: .store(name))
        do {
            return try route.entry(of: draw(place, &random))
        } catch {
            preconditionFailure("an action of \(name) can't be encoded: \(error)")
        }
    }

    /// Draws an action.
    func draw(_ place: SimulatedState.Place, _ random: inout SimulationRandom) -> S.Action {
        action(place, store, &random)
    }

    /// The store, if it is of this type.
    func typed<Typed>(as type: Typed.Type) -> Typed? { store as? Typed }

    var version: StoreVersion { store.version }

    var encoded: [UInt8] {
        late?.atOnce { encodedState(of: store.core) } ?? encodedState(of: store.core)
    }

    var schemaVersion: UInt32 { UInt32(store.schemaVersion) }

    func corrupt(by change: ([UInt8]) -> [UInt8]) {
        do {
            let version = store.schemaVersion
            let spoilt = try S.snapshot(from: change(encoded), version: version)
            // Written before `inspect` returns: the executor is the immediate one.
            nonisolated(unsafe) var position = SequenceNumber.zero
            store.core.inspect { _, sequence in position = sequence }
            store.core.restore(spoilt, at: position, version: version) { _ in }
        } catch {
            preconditionFailure("the state of \(name) can't be spoilt: \(error)")
        }
    }
}

final class TypedSimulatedBridge<S: ReplicatedState>: SimulatedBridge {
    let name: Name
    private let scope: Scope
    private let outbox: Outbox
    private let action: TypedSimulatedStore<S>.Draw

    init(
        _ name: Name, scope: Scope, outbox: Outbox,
        action: @escaping TypedSimulatedStore<S>.Draw
    ) {
        self.name = name
        self.scope = scope
        self.outbox = outbox
        self.action = action
    }

    func open(
        request: UInt64, scope: Scope, payloadBytesMax: Int,
        completion: @escaping (Result<SequenceNumber, NodeError>) -> Void,
        inhabited: @escaping () -> Void
    ) -> Registration {
        let route = OutboxRoute<S>(outbox: outbox, target: .state(name))
        // Everything here runs on one thread.
        nonisolated(unsafe) let inhabited = inhabited
        return .bridge(
            S.self, name, request: request, scope: scope, payloadBytesMax: payloadBytesMax
        ) { result in
            if case .success = result {
                scope.channel(of: S.self).setRoute(route)
                scope.channel(of: S.self).whenInhabited(besides: nil) { inhabited() }
            }
            completion(result)
        }
    }

    func dispatch(
        _ place: SimulatedState.Place, _ random: inout SimulationRandom
    ) -> DispatchHandle {
        scope.channel(of: S.self).dispatchTracked(action(place, nil, &random))
    }
}

/// The canonical encoding of a store's state, if no other thread serves the store.
func encodedState<S: ReplicatedState>(of core: StoreCore<S>) -> [UInt8] {
    // Written before `inspect` returns: the executor is the immediate one.
    nonisolated(unsafe) var result: [UInt8] = []
    core.inspect { state, _ in
        guard let state else { preconditionFailure("a simulated store was released") }
        let version = core.versionInForce.load(ordering: .acquiring)
        result = encoding(
            of: state.snapshot, S.self, as: version == 0 ? S.schemaVersion : version)
    }
    return result
}

func encoding<S: ReplicatedState>(
    of snapshot: S.Snapshot, _ state: S.Type, as version: Int
) -> [UInt8] {
    do {
        return try S.encode(snapshot, as: version)
    } catch {
        preconditionFailure("the state of \(S.name) can't be encoded: \(error)")
    }
}
