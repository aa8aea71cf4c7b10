import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import ConfluxZeroMQ

/// A dispatch with an idempotency key. Each key has a session of its own at the sequencer, whose first action is this one:
/// the sequencer applies it once, and tells its outcome to whoever repeats it, as long as it remembers the session.
struct KeyedDispatch: Sendable {
    let node: Node
    let settings: NodeSettings
    let key: SessionKey
    let target: BatchTarget
    let payload: [UInt8]
    let timeout: Duration

    /// - Returns: The place of the action, which is applied here.
    /// - Throws: What became of it instead.
    func run() async throws(CommandFailure) -> Receipt {
        let deadline = Moment.now.monotonic + timeout
        var settings = settings
        // The gateway's own node has these.
        (settings.name, settings.crashJournal) = (nil, nil)
        let core = try await failing { [settings] () async throws(NodeError) in
            let core = try NodeCore(
                address: node.core.address, settings: settings, role: .member, scope: Scope(),
                key: key)
            try await core.connected(within: timeout)
            return core
        }
        defer { core.leave(timeout: .zero) }
        guard await core.resumption() != nil else {
            throw CommandFailure(
                .nodeRefused, "The sequencer ended the session. Send the request again.")
        }
        let receipt: Receipt
        do throws(DispatchError) {
            receipt = try await core.submit(target, payload).effect(within: Self.rest(deadline))
        } catch {
            guard error.code == .timedOut else { throw CommandFailure(error) }
            guard let receipt = error.receipt else { throw .unknown }
            throw Self.effectUnknown(receipt, error.message)
        }
        // Another node may have said so.
        do throws(NodeError) {
            try await node.wait(for: receipt, patience: Self.rest(deadline))
        } catch {
            throw Self.effectUnknown(receipt, error.message)
        }
        return receipt
    }

    private static func rest(_ deadline: Duration) -> Duration {
        max(.milliseconds(1), deadline - Moment.now.monotonic)
    }

    private static func effectUnknown(_ receipt: Receipt, _ reason: String) -> CommandFailure {
        CommandFailure(
            .unknownOutcome, code: "effectUnknown", receipt: receipt,
            """
            The action is in the log as entry \(receipt.sequence); whether it is applied here is not known: \(reason)
            """)
    }
}

extension CommandFailure {
    /// Nobody knows yet what became of a dispatch.
    static let unknown = CommandFailure(
        .unknownOutcome, code: "outcomeUnknown",
        """
        Nobody knows yet whether the action is in the log. Look at the state; with a key, send the request again.
        """)
}
