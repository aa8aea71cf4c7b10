import Conflux

extension NodeError {
    static func noRoom(within limit: Duration, _ address: String) -> NodeError {
        NodeError(
            code: .timedOut,
            message: """
                The sequencer at \(address) took too few actions to make room for more within \(limit). Wait longer; if \
                it lasts, see what the sequencer prints.
                """)
    }
}

extension DispatchError {
    static func payloadTooLarge(_ bytes: Int, _ limit: Int) -> DispatchError {
        DispatchError(
            code: .invalidAction,
            message: """
                The encoded action has \(bytes) bytes and the limit is \(limit). Make it smaller, \
                or raise the limit of the sequencer and of the node.
                """)
    }

    static func outboxFull(_ bytes: Int) -> DispatchError {
        DispatchError(
            code: .outboxFull,
            message: """
                The node has \(bytes) bytes of actions that the sequencer has not taken yet, so \
                the action was not sent. In a task, await Node.waitForRoom() and dispatch it again; \
                on a thread of your own, let dispatches wait (NodeSettings.outboxPolicy).
                """)
    }

    static let nodeClosed = DispatchError(
        code: .notConnected,
        message: "The node is closed, so the action was not sent. Connect a node and try again.")
}
