import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Looks for one action in the commits of a log.
///
/// The sequencer takes the actions of a session in the order of their counters, and takes none after the session's end.
/// So an action is not in the log, and never will be, if a later one of its session is, or the session has ended, and
/// no commit in between was missed. Everything else is left open.
package struct OutcomeSearch: Sendable {
    private let token: DispatchToken
    /// The number of the next entry; nil before the first commit.
    private(set) var next: SequenceNumber?

    /// Begins before the first commit.
    package init(for token: DispatchToken) { self.token = token }

    /// Takes the next commit.
    ///
    /// - Returns: What became of the action; nil while that is open.
    package mutating func take(_ commit: Commit) -> Result<Receipt, DispatchError>? {
        guard commit.log == token.log else { return .failure(.otherLog(than: token)) }
        if let next {
            guard commit.first == next else { return .failure(.changedHistory(of: token)) }
        } else {
            let since = token.since.sequence
            if commit.last < since { return nil }
            guard commit.first <= since else { return .failure(.discarded(token)) }
            guard commit.epoch == token.since.epoch else {
                return .failure(.changedHistory(of: token))
            }
        }
        next = commit.last.next
        var first = commit.first
        for block in commit.blocks {
            switch block {
            case .batch(token.origin.incarnation, let batch)
            where batch.lastCounter >= token.origin.counter:
                guard batch.firstCounter <= token.origin.counter else {
                    return .failure(.neverLogged)
                }
                let sequence = first.advanced(by: token.origin.counter - batch.firstCounter)
                return .success(
                    Receipt(
                        log: commit.log, epoch: commit.epoch, sequence: sequence,
                        timestamp: commit.timestamp))
            case .event(.forgotten(token.origin.incarnation), _): return .failure(.neverLogged)
            case .batch, .event: break
            }
            first = first.advanced(by: UInt64(block.count))
        }
        return nil
    }

    /// The error if the time is over first.
    func undecided(within limit: Duration?) -> DispatchError {
        DispatchError(
            code: .timedOut,
            message: """
                The action is not in the log up to entry \(next.map { $0.rawValue - 1 } ?? token.since.sequence.rawValue), \
                to which it was read\(limit.map { " within \($0)" } ?? ""). It may stand behind that, or still come: ask \
                again later.
                """)
    }
}

extension DispatchError {
    /// The log shows that the action never gets into it.
    fileprivate static let neverLogged = DispatchError(
        code: .rejected,
        message: """
            The action is not in the log and never will be: it was rejected or withdrawn, or its session ended before \
            it was sent. Dispatch it again if it is wanted.
            """)

    fileprivate static func discarded(_ token: DispatchToken) -> DispatchError {
        unknown("the log has discarded entries after \(token.since.sequence)")
    }

    static func changedHistory(of token: DispatchToken) -> DispatchError {
        unknown(
            "the log has lost its end since entry \(token.since.sequence), or goes on differently")
    }

    static func notRead(_ error: NodeError) -> DispatchError {
        let code: Code =
            switch error.code {
            case .timedOut, .unreachable: .timedOut
            case .cancelled: .cancelled
            default: .notConnected
            }
        return DispatchError(
            code: code, message: "The log was not read to its end, so ask again: \(error.message)",
            reason: error)
    }

    static func otherLog(than token: DispatchToken) -> DispatchError {
        unknown(
            "the action was sent to the log \(token.log), and this is another one; ask a node of that log"
        )
    }

    private static func unknown(_ reason: String) -> DispatchError {
        DispatchError(
            code: .outcomeUnknown,
            message: """
                Whether the action is in the log can't be told: \(reason). Read the state. Dispatch the action again only \
                if it may happen twice.
                """)
    }
}
