import Conflux
import ConfluxProtocol
import ConfluxVocabulary

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
    static func notEncodable<S: BridgedState>(
        _ state: S.Type, _ error: CodingFailure
    ) -> DispatchError {
        DispatchError(
            code: .invalidAction,
            message: """
                The action of \(S.name) can't be encoded, so it was not sent. Dispatch one \
                that can: \(error)
                """,
            reason: error)
    }

    static func tooLargeTogether(_ limits: WireLimits) -> DispatchError {
        DispatchError(
            code: .invalidAction,
            message: """
                The transaction or event is too large, and nothing was sent: a batch has at most \
                \(limits.rowsPerBatchMax) stores or states, \(limits.entriesPerBatchMax) actions and \
                \(limits.batchBytesMax) bytes. Make several of it.
                """)
    }

    static let tornTransaction = DispatchError(
        code: .conflict,
        message: """
            Each time that the transaction ran, one of its stores had not applied everything yet that the others had, and \
            nothing was sent. Run it again, or give these stores executors that keep up.
            """)

    static func refusedInTransaction(_ reason: any Error) -> DispatchError {
        DispatchError(
            code: .refused,
            message: """
                The state's check refused an action of the transaction, and nothing was sent. Look at the state first, \
                or dispatch another action. The reason: \(reason)
                """,
            reason: reason)
    }

    static func refusedInPart(_ error: DispatchError) -> DispatchError {
        DispatchError(
            code: .refused,
            message: """
                The transaction is in the log, and one of its actions had no effect there, though it had one when it was \
                tried: its check depends on the time, on its number or on random numbers, or somebody skipped it. The \
                other actions stand. Don't let such checks depend on these. The reason: \
                \(error.reason.map { "\($0)" } ?? error.message)
                """,
            receipt: error.receipt, reason: error.reason)
    }

    static func notAppliedInTime(_ receipt: Receipt) -> DispatchError {
        DispatchError(
            code: .timedOut,
            message: """
                The transaction is in the log, and stores here have not applied all of it in the time given. Await \
                Node.wait(for:) with the receipt.
                """,
            receipt: receipt)
    }

    static func stoppedInTransaction(_ store: StoreName, _ message: String) -> DispatchError {
        DispatchError(
            code: .storeStopped,
            message: "The transaction uses \(store), and nothing was sent. \(message)")
    }
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
