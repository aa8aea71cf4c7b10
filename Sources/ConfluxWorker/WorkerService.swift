import ConfluxArguments
import ConfluxMonitoring
import ConfluxNode
import ConfluxProtocol

/// What a worker is for. A plain worker hosts its stores; a gateway also serves them to others.
package protocol WorkerService: Sendable {
    /// Gets every commit that is delivered to the node, on the thread that applies; nil if nobody wants them.
    var tap: (@Sendable (Commit) -> Void)? { get }

    /// What is served at the address of `--http`, besides metrics and health; nil for nothing.
    var api: WorkerAPI? { get }

    /// Prepares what needs no node, before the node connects.
    ///
    /// - Parameters:
    ///   - settings: The node's settings, which it may change.
    ///   - environment: Gets its events.
    /// - Throws: Why the worker can't start.
    func prepare(
        _ settings: inout NodeSettings, in environment: CommandEnvironment
    ) throws(CommandFailure)

    /// Opens a store.
    ///
    /// - Returns: What keeps it open.
    func open(
        _ store: StoreName, of state: HostedState, on node: Node, patience: Duration
    ) async throws(NodeError) -> HostedHandle

    /// Begins to serve. All stores are open.
    ///
    /// - Parameters:
    ///   - node: The node.
    ///   - environment: Gets its events.
    /// - Returns: What the line that says ready tells besides.
    /// - Throws: Why it can't serve.
    func serve(
        _ node: Node, in environment: CommandEnvironment
    ) async throws(CommandFailure) -> (fields: JSONFields, text: String)

    /// Ends what was begun. Called once after ``prepare(_:in:)``, also if it has failed.
    func end()
}

/// What a worker serves over HTTP besides metrics and health.
package struct WorkerAPI: Sendable {
    /// The most connections.
    let connectionsMax: Int
    /// Makes the service, whose requests must have the token if there is one.
    let service: @Sendable (BearerToken?) -> any HTTPService

    /// Makes a description of what is served.
    ///
    /// - Parameters:
    ///   - connectionsMax: The most connections.
    ///   - service: Makes the service, whose requests must have the token if there is one.
    package init(
        connectionsMax: Int, service: @escaping @Sendable (BearerToken?) -> any HTTPService
    ) {
        (self.connectionsMax, self.service) = (connectionsMax, service)
    }
}

/// Hosts stores, and nothing else.
package struct Hosting: WorkerService {
    private let arguments: Invocation

    package init(_ arguments: Invocation) { self.arguments = arguments }

    package var tap: (@Sendable (Commit) -> Void)? { nil }
    package var api: WorkerAPI? { nil }

    package func prepare(
        _ settings: inout NodeSettings, in environment: CommandEnvironment
    ) throws(CommandFailure) {
        settings.keys = try WorkerOptions.keys(arguments)
    }

    package func open(
        _ store: StoreName, of state: HostedState, on node: Node, patience: Duration
    ) async throws(NodeError) -> HostedHandle {
        try await state.open(node, store.instance, patience)
    }

    package func serve(
        _ node: Node, in environment: CommandEnvironment
    ) async throws(CommandFailure) -> (fields: JSONFields, text: String) { ([:], "") }

    package func end() {}
}
