import Conflux
import ConfluxNode
import ConfluxProtocol

/// A state that a worker can host, by its name on the command line.
public struct HostedState: Sendable {
    /// The state's name: `counter`.
    public let name: String
    /// The state's type.
    package let type: any ReplicatedState.Type
    /// The state, to make the past of its stores.
    package let replayed: ReplayedState
    /// Opens a store of the state. The returned handle hosts the store as long as it is kept.
    let open: @Sendable (Node, Name, Duration) async throws(NodeError) -> HostedHandle
    /// The state's version in this program.
    let schemaVersion: Int
    /// Migrates a snapshot of a version, and returns what changes. If it is known which version is in force from there on,
    /// a store must be able to begin with it.
    let changesByMigration:
        @Sendable ([UInt8], Int, StateVersion?) throws(StoreError) -> [JSONChange]

    /// Makes the entry of a state that is a class.
    ///
    /// - Parameter state: The state: `HostedState(CounterState.self)`.
    public init<S: ReplicatedState>(_ state: S.Type) {
        name = S.name
        type = S.self
        replayed = .replicated(S.self)
        schemaVersion = S.schemaVersion
        changesByMigration = { (bytes, version, inForce) throws(StoreError) in
            let changes = try S.changesByMigration(of: bytes, from: version)
            if let inForce { try Self.tryOpening(S.self, bytes, version, in: inForce) }
            return changes
        }
        open = { (node, instance, patience) async throws(NodeError) in
            HostedHandle(
                try await node.store(S.self, named: instance.text, patience: patience))
        }
    }

    /// Reads a snapshot as a store that begins with it does.
    private static func tryOpening<S: ReplicatedState>(
        _ state: S.Type, _ bytes: [UInt8], _ version: Int, in inForce: StateVersion
    ) throws(StoreError) {
        let risen = Int(inForce.schemaVersion)
        guard risen <= S.schemaVersion else {
            throw StoreError(
                .newerSnapshot,
                """
                The schema version of \(S.name) has risen to \(risen) from its snapshot at \(inForce.base), and this \
                program knows \(S.schemaVersion). Run a newer program.
                """)
        }
        // A program that no longer understands the version lets it rise to its own, with its own migration.
        guard risen >= S.oldestSchemaVersion else { return }
        try S.tryOpening(
            with: Snapshot(
                sequence: inForce.base, schemaVersion: UInt32(version),
                state: EncodedState(coding: .json, bytes: bytes[...])), in: inForce.version)
    }

    /// Makes the entry of a state that is a model.
    ///
    /// - Parameter model: The model: `HostedState(Stock.self)`.
    public init<M: Model>(_ model: M.Type) {
        self.init(ModelState<M>.self)
    }
}

/// Keeps a store, and with it its hosting.
// Sendable: it is immutable, and only keeps a store, which is Sendable.
package struct HostedHandle: @unchecked Sendable {
    private let store: AnyObject

    package init(_ store: AnyObject) {
        self.store = store
    }
}
