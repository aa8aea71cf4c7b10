import Conflux
import ConfluxProtocol
import ConfluxZeroMQ

extension Node {
    /// Waits until this node's replicas have applied everything that was committed before the
    /// call. A read after it is linearizable: it has the effect of every action for which anybody
    /// had a receipt before the call.
    ///
    /// ```swift
    /// try await node.barrier()
    /// print(stock.left)
    /// ```
    ///
    /// It asks the sequencer, whose log confirms that no newer term has begun, and then waits
    /// for the number that the sequencer names. After a lost question or a restart of the
    /// sequencer it asks again. It also waits for stores that are being opened. Cancelling the
    /// task ends the wait.
    ///
    /// - Parameter patience: How long to wait.
    /// - Throws: ``NodeError``: `timedOut`, `cancelled`, `closed`; `unanswered` when the node or the
    ///   sequencer has as many barriers under way as it may.
    public func barrier(patience: Duration = .seconds(10)) async throws(NodeError) {
        try await core.wait(for: .latest, patience: patience)
    }

    /// Waits until this node's replicas have applied an action that another node, perhaps in
    /// another process, has a receipt for.
    ///
    /// A receipt of the term that the node is in costs no message. For a receipt of another
    /// term, the node asks the sequencer first, as in ``barrier(patience:)``.
    ///
    /// - Parameters:
    ///   - receipt: The receipt. It must be of this node's log; a log that lost its end and continued
    ///     differently may have another action under the number.
    ///   - patience: How long to wait.
    /// - Throws: ``NodeError``: `otherLog`, `timedOut`, `cancelled`, `closed`; `unanswered` when the
    ///   node has as many waits under way as it may.
    public func wait(
        for receipt: Receipt, patience: Duration = .seconds(10)
    ) async throws(NodeError) {
        guard receipt.log != nil else {
            throw NodeError(
                code: .otherLog,
                message: """
                    The action was applied by a store without a node, so no other process will have it. \
                    Wait for receipts of stores that a node hosts.
                    """)
        }
        try await core.wait(for: .receipt(receipt), patience: patience)
    }
}

extension NodeCore {
    /// Waits until this node has applied a number.
    ///
    /// - Returns: The number.
    @discardableResult
    package func wait(
        for goal: Wait.Goal, patience: Duration
    ) async throws(NodeError) -> SequenceNumber {
        guard jobs.count < max(1, settings.jobsMax) else {
            let text = "the node has too much to apply to begin another wait; try again later"
            throw NodeError(code: .unanswered, message: text)
        }
        let outcome = OneShot<Result<SequenceNumber, NodeError>>()
        let request = takeRequest()
        let wait = Wait(request: request, goal: goal) { outcome.send($0) }
        guard jobs.post(.wait(wait)) == .accepted else { throw .closed }
        let late = NodeError(
            code: .timedOut,
            message: """
                The node did not apply the entry within \(patience). Wait longer; if it lasts, look at \
                conflux status: does the sequencer at \(address) serve, and does the node keep up?
                """)
        let result = await outcome.receive(
            onCancel: .failure(.cancelled), timeout: patience, onTimeout: .failure(late))
        if case .failure(let error) = result, [.cancelled, .timedOut].contains(error.code) {
            jobs.post(.giveUp(request: request))
        }
        return try result.get()
    }
}

extension NodeError {
    static func otherLog(_ log: LogID) -> NodeError {
        NodeError(
            code: .otherLog,
            message: """
                The receipt is of another log than the node's, which is \(log). Connect to the sequencer \
                that gave it.
                """)
    }

    static func undecided(_ code: RejectionCode, _ message: String) -> NodeError {
        NodeError(
            code: [.passed, .notAllowed, .upgradeFailed].contains(code) ? .rejected : .unanswered,
            message: "\(message) (\(code))",
            rejection: code)
    }

    static let historyLost = NodeError(
        code: .unanswered,
        message: """
            The log has lost the entry that you waited for. Look at the state, and dispatch the \
            action again if it is missing.
            """
    )
}
