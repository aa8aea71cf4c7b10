import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// A store that the gateway serves, of any state.
protocol AnyServedStore: AnyObject, Sendable {
    var name: StoreName { get }
    var records: ServedRecords { get }
    /// The shapes of the state's actions; nil if they are not known.
    var catalog: ActionCatalog? { get }
    /// The state, to make its past.
    var replayed: ReplayedState { get }

    /// Checks and encodes an action.
    ///
    /// - Parameter json: The action in canonical JSON.
    /// - Returns: What is to be submitted.
    /// - Throws: Why it is no action of the state.
    func submission(of json: [UInt8]) throws(CodingFailure) -> (BatchTarget, [UInt8])

    /// The store is not served any more, once the records have everything before.
    ///
    /// - Parameters:
    ///   - reason: Why.
    ///   - isOver: Whether that is for good.
    func end(_ reason: String, isOver: Bool)

    /// Calls a function once the records have everything that the store has applied by now.
    func settle(_ body: @escaping @Sendable (StoreVersion) -> Void)
}

extension ReplicatedState {
    /// Opens a store of this state for a gateway. *Use*: to open a store of a type that is not known when the program is
    /// built.
    static func serve(
        _ name: StoreName, on node: Node, patience: Duration, payloadBytesMax: Int,
        epochs: EpochTable, announce: @escaping @Sendable () -> Void
    ) async throws(NodeError) -> any AnyServedStore {
        try await ServedStore<Self>.open(
            name, on: node, patience: patience, payloadBytesMax: payloadBytesMax, epochs: epochs,
            announce: announce)
    }
}
