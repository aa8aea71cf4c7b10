import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// A dispatch with an idempotency key. Each key has a session of its own at the sequencer, whose first action is this one:
/// the sequencer applies it once, and tells its place to whoever repeats it, for seven days.
struct KeyedDispatch: Sendable {
    let address: String
    let settings: NodeSettings
    let key: SessionKey
    let target: BatchTarget
    let payload: [UInt8]
    let timeout: Duration

    /// - Returns: The place of the action, which is applied or refused there.
    /// - Throws: What became of it instead.
    func run() async throws(CommandFailure) -> Receipt {
        let core: NodeCore
        do throws(NodeError) {
            core = try NodeCore(
                address: address, settings: settings, role: .visitor, scope: Scope(), key: key)
            try await core.connected(within: timeout)
        } catch {
            throw CommandFailure(error)
        }
        defer { core.leave(timeout: .zero) }
        guard let resumption = await core.resumption() else {
            throw CommandFailure(
                .nodeRefused, "The sequencer ended the session. Send the request again.")
        }
        guard resumption.settled == 0 else {
            throw CommandFailure(
                .unknownOutcome, code: "outcomeUnknown",
                "The sequencer no longer has the outcome of this key. Look at the state.")
        }
        let receipt: Receipt
        do throws(DispatchError) {
            receipt = try await core.submit(target, payload).receipt(within: timeout)
        } catch {
            guard error.code == .timedOut else { throw CommandFailure(error) }
            throw .unknown
        }
        do throws(CommandFailure) {
            return try await core.effect(of: receipt, on: target.target, patience: timeout)
        } catch {
            guard error.exitCode == .timedOut else { throw error }
            throw CommandFailure(
                .unknownOutcome, code: "effectUnknown", receipt: error.receipt, error.message)
        }
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
