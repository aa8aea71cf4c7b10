// Not compiled with the package itself, which Conflux does not depend on: see README.md.

import ConfluxNode
import Logging

/// Logs a node's events until the node is closed.
///
/// - Parameters:
///   - node: The node.
///   - logger: The logger.
public func logEvents(of node: Node, to logger: Logger) async {
    for await event in node.events {
        logger.log(level: event.level, "\(event)")
    }
}

extension NodeEvent {
    /// How much an event matters to an operator.
    var level: Logger.Level {
        switch self {
        case .storeStopped, .diverged, .logDamaged: .error
        case .disconnected, .connectionRefused, .historyLost: .warning
        case .reconnected, .sessionForgotten, .missed: .notice
        default: .info
        }
    }
}
