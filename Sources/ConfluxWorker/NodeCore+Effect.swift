import ConfluxNode
import ConfluxProtocol

extension NodeCore {
    /// Asks whether the first hosting node applied or refused an entry.
    ///
    /// - Parameters:
    ///   - receipt: The entry's.
    ///   - target: What it is for.
    ///   - patience: How long to wait for the answer.
    /// - Returns: The receipt, if the entry was applied.
    /// - Throws: What became of it, or that this is not known.
    package func effect(
        of receipt: Receipt, on target: Target, patience: Duration
    ) async throws(CommandFailure) -> Receipt {
        let answer: Answer
        do throws(NodeError) {
            answer = try await ask(.applied(receipt.sequence, target), patience: patience)
        } catch {
            let exitCode: ExitCode = error.code == .timedOut ? .timedOut : .unknownOutcome
            throw CommandFailure(
                exitCode, code: exitCode == .timedOut ? nil : "effectUnknown", receipt: receipt,
                """
                The action is in the log as entry \(receipt.sequence); whether it was refused is not known: \
                \(error.message)
                """)
        }
        switch answer.body {
        case .refused(let message):
            throw CommandFailure(
                .refused, receipt: receipt,
                "Entry \(receipt.sequence) was refused and changed nothing: \(message)")
        case .stopped(_, let message):
            throw CommandFailure(
                .storeStopped, receipt: receipt,
                """
                The action is in the log as entry \(receipt.sequence), and no node has applied it: \(message)
                """)
        case .concernedNobody:
            throw CommandFailure(
                .concernedNobody, receipt: receipt,
                """
                The action is in the log as entry \(receipt.sequence), but no store took it: there is none, or all \
                are frozen. `conflux status` shows the stores.
                """)
        default: return receipt
        }
    }
}
