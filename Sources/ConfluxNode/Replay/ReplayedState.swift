import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// A state whose stores a replay runs.
///
/// ```swift
/// let report = try replay("history", with: .model(Stock.self), .replicated(Counter.self))
/// ```
public struct ReplayedState: Sendable {
    /// Its name in the log.
    package let name: Name
    /// The schema versions that this program understands.
    let versions: SupportedVersions
    /// Makes a store of it in an applier.
    let host: @Sendable (StoreName, Applier, Scope) -> Void
    /// A snapshot in the form that this program gives it in a version.
    let canonical: @Sendable (Snapshot, UInt32) throws -> [UInt8]
    /// Decodes an action.
    let action: @Sendable (Bytes, PayloadCoding) throws -> any Sendable
    /// An action, or what the state makes of an event, in canonical JSON; nil for an event that it does not handle.
    let json: @Sendable (Bytes, BatchTarget) throws -> [UInt8]?

    /// A state that is a value.
    public static func model<Model: Conflux.Model>(_ model: Model.Type) -> ReplayedState {
        replicated(ModelState<Model>.self)
    }

    /// A state that is a class.
    public static func replicated<State: ReplicatedState>(_ state: State.Type) -> ReplayedState {
        ReplayedState(state)
    }

    private init<S: ReplicatedState>(_ state: S.Type) {
        guard let name = Name(S.name) else {
            preconditionFailure("\(S.self).name must match [a-z0-9._-]{1,64}, and is \(S.name)")
        }
        S._willReplicate()
        self.name = name
        versions = S.supportedVersions
        host = { store, applier, scope in
            let core = StoreCore<S>(
                state: S(), mutations: S.mutations, executor: .immediate, scope: scope, seed: 0)
            applier.host(core, store, scope: scope)
        }
        canonical = { snapshot, version in
            try S.encode(
                try S.snapshot(from: snapshot.state.bytes, version: Int(snapshot.schemaVersion)),
                as: Int(version))
        }
        action = { payload, coding in
            try ActionCoder<S.Action>(sizeBytesMax: .max).decode(payload, as: coding)
        }
        json = { payload, row in
            let coder = ActionCoder<S.Action>(sizeBytesMax: .max)
            guard case .event(let event, _) = row.target else {
                return try coder.encode(coder.decode(payload, as: row.coding), as: .json)
            }
            let action = try S.eventHandlers?.action(ofEvent: event, payload, as: row.coding)
            return try action.map { try coder.encode($0, as: .json) }
        }
    }
}

extension Applier {
    /// Hosts a store for which no sequencer is asked. A snapshot begins it.
    func host<S: ReplicatedState>(_ core: StoreCore<S>, _ name: StoreName, scope: Scope) {
        let stores =
            states[name.state]
            ?? StateStores(name.state, locals: makeProgress(of: .state(name.state)))
        states[name.state] = stores
        let runner = stores.typed { TypedRunner<S>($0, scope: scope, payloadBytesMax: .max) }
        runner?.insert(
            core,
            Replica(name, lane: ReplicaLane(of: core), progress: makeProgress(of: .store(name))))
    }
}
