import Conflux
import ConfluxNode

/// A state that a worker can host, by its name on the command line.
public struct HostedState: Sendable {
    /// The state's name: `counter`.
    public let name: String
    /// Opens a store of the state. The returned handle hosts the store as long as it is kept.
    let open: @Sendable (Node, Name, Duration) async throws(NodeError) -> HostedHandle
    /// The state's version in this program.
    let schemaVersion: Int
    /// Migrates a snapshot of a version, and returns what changes.
    let changesByMigration: @Sendable ([UInt8], Int) throws(StoreError) -> [JSONChange]

    /// Makes the entry of a state that is a class.
    ///
    /// - Parameter state: The state: `HostedState(CounterState.self)`.
    public init<S: ReplicatedState>(_ state: S.Type) {
        name = S.name
        schemaVersion = S.schemaVersion
        changesByMigration = { (bytes, version) throws(StoreError) in
            try S.changesByMigration(of: bytes, from: version)
        }
        open = { (node, instance, patience) async throws(NodeError) in
            HostedHandle(
                try await node.store(S.self, named: instance.text, patience: patience))
        }
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
struct HostedHandle: @unchecked Sendable {
    private let store: AnyObject

    init(_ store: AnyObject) {
        self.store = store
    }
}
