// Not compiled with the package itself, which Conflux does not depend on: see README.md.

import ConfluxNode
import ServiceLifecycle

/// A node as a service: it closes the node when the service group shuts down.
///
/// List it before the services that dispatch. A group shuts down its services in the reverse order, so the node waits for
/// the outcomes of all that they dispatched.
public struct NodeService: Service {
    private let node: Node
    private let limit: Duration

    /// Makes a service of a node.
    ///
    /// - Parameters:
    ///   - node: The node.
    ///   - limit: How long the node waits for outcomes when it is closed.
    public init(_ node: Node, closingWithin limit: Duration = .seconds(5)) {
        (self.node, self.limit) = (node, limit)
    }

    /// Waits for the shutdown, and closes the node.
    public func run() async throws {
        // It throws if the task is cancelled instead. The node is closed all the same.
        try? await gracefulShutdown()
        await node.close(within: limit)
    }
}
