import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Asks other processes for the effect of an action of this node.
package typealias Inquire =
    @Sendable (Receipt, Target, _ limit: Duration?) async throws(DispatchError) ->
    Receipt

extension LinkPort {
    /// How long one question waits. It is asked again after that, since it may be lost with the sequencer.
    private static let effectPatience = Duration.seconds(5)
    /// How long it waits before it asks a sequencer again that has too many questions.
    private static let pause = Duration.milliseconds(100)

    /// Asks the processes that host a store what they did with an action.
    ///
    /// - Parameters:
    ///   - receipt: The action's.
    ///   - target: What the action is for.
    ///   - limit: How long to wait; nil to wait as long as it takes.
    /// - Returns: The receipt, if a host has applied the action.
    /// - Throws: What became of the action, or why that is not known.
    func effect(
        of receipt: Receipt, on target: Target, within limit: Duration?
    ) async throws(DispatchError) -> Receipt {
        // The log itself keeps timers and leases. No process does anything with such an entry.
        if target == .timers || target == .leases { return receipt }
        let begun = Moment.now.monotonic
        while true {
            let left = limit.map { $0 - (Moment.now.monotonic - begun) }
            let answer: Answer
            do throws(NodeError) {
                answer = try await ask(
                    .applied(receipt.sequence, target),
                    patience: max(.zero, min(left ?? Self.effectPatience, Self.effectPatience)))
            } catch {
                if error.code == .timedOut, left.map({ $0 > Self.effectPatience }) ?? true {
                    continue
                }
                // The sequencer has room again once others are answered.
                if error.questionFailure == .tableFull, left.map({ $0 > Self.pause }) ?? true {
                    do throws(NodeError) {
                        try await NodeCore.pause(for: Self.pause)
                    } catch {
                        throw .effect(of: receipt, notKnown: error)
                    }
                    continue
                }
                throw .effect(of: receipt, notKnown: error)
            }
            switch answer.body {
            case .refused(let message): throw .refused(message, receipt)
            case .stopped(_, let message): throw .stopped(message, receipt)
            case .concernedNobody: throw .concernedNobody(receipt)
            default: return receipt
            }
        }
    }
}

extension DispatchError {
    fileprivate static func effect(
        of receipt: Receipt, notKnown error: NodeError
    ) -> DispatchError {
        let code: Code =
            switch error.code {
            case .timedOut: .timedOut
            case .cancelled: .cancelled
            default: .effectUnknown
            }
        return DispatchError(
            code: code,
            message: """
                The action is in the log as entry \(receipt.sequence); whether it was refused is not known: \
                \(error.message)
                """, receipt: receipt, reason: error)
    }

    fileprivate static func refused(_ message: String, _ receipt: Receipt) -> DispatchError {
        DispatchError(
            code: .refused,
            message: "Entry \(receipt.sequence) was refused and changed nothing: \(message)",
            receipt: receipt, reason: RefusalText(description: message))
    }

    fileprivate static func stopped(_ message: String, _ receipt: Receipt) -> DispatchError {
        DispatchError(
            code: .storeStopped,
            message: """
                The action is in the log as entry \(receipt.sequence), and no node has applied it: \(message)
                """, receipt: receipt)
    }

    fileprivate static func concernedNobody(_ receipt: Receipt) -> DispatchError {
        DispatchError(
            code: .concernedNobody,
            message: """
                The action is in the log as entry \(receipt.sequence), but no store took it: there is none, or all \
                are frozen. `conflux status` shows the stores.
                """, receipt: receipt)
    }
}
