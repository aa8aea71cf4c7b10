import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Why a node can't do what it was asked for.
public struct NodeError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure: stable, so that a program can decide by it.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// The address is invalid.
        case invalidAddress
        /// No sequencer answered in time.
        case unreachable
        /// The sequencer is there, but serves nobody until its log works again.
        case notServing
        /// The sequencer refused the node: its name is taken, or its version is another one.
        case refused
        /// The keys don't fit: the sequencer does not admit the node's key, or has another key
        /// itself, or only one of the two encrypts the connection.
        case keyRefused
        /// The store or the state can't be opened.
        case openFailed
        /// The name breaks the rule of names.
        case invalidName
        /// The node already bridges or hosts this in another way.
        case alreadyHosted
        /// The node is closed.
        case closed
        /// Nobody could answer the question.
        case unanswered
        /// The answer did not come in time.
        case timedOut
        /// The waiting task was cancelled.
        case cancelled
        /// The receipt is of another log than the node's, or of none.
        case otherLog
        /// The store was dropped.
        case dropped
        /// The node does not host the store.
        case notHosted
        /// The sequencer rejected the request.
        case rejected
        /// The store stopped at an entry that this program can't, or must not, apply.
        case storeStopped
        /// Another node has the crash journal.
        case journalInUse
        /// The crash journal's file can't be made or written, or is another kind of file.
        case journalUnusable
        /// The system refuses something else, such as another open file.
        case failed
    }

    /// The kind of failure.
    public let code: Code
    /// What happened and what to do, in a sentence or two.
    public let message: String
    /// Why the sequencer said bye, if it did.
    public let bye: ByeCode?
    /// Why the sequencer rejected the request, if it said so.
    public let rejection: RejectionCode?
    /// Why a question has no answer, if that is known.
    public let questionFailure: QuestionFailure?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: The kind of failure.
    ///   - message: What happened and what to do.
    ///   - bye: Why the sequencer said bye, if it did.
    ///   - rejection: Why the sequencer rejected the request, if it said so.
    ///   - questionFailure: Why a question has no answer, if that is known.
    public init(
        code: Code, message: String, bye: ByeCode? = nil, rejection: RejectionCode? = nil,
        questionFailure: QuestionFailure? = nil
    ) {
        self.code = code
        self.message = message
        self.bye = bye
        self.rejection = rejection
        self.questionFailure = questionFailure
    }

    /// Makes the error of an address, or of the system that refuses a socket or a thread.
    init(_ error: ZeroMQError) {
        let code: Code =
            switch error.code {
            case .invalidEndpoint, .invalidSetting, .addressNotAvailable: .invalidAddress
            default: .failed
            }
        self.init(code: code, message: error.message)
    }

    /// The code and the message.
    public var description: String { "\(code.rawValue): \(message)" }

    static let closed = NodeError(
        code: .closed, message: "The node is closed. Connect another one.")
    static let cancelled = NodeError(
        code: .cancelled,
        message:
            "The wait was cancelled. What was asked for may still happen; ask again to learn of it."
    )

    static func dropped(_ store: StoreName) -> NodeError {
        NodeError(
            code: .dropped,
            message: "\(store) was dropped, in every process. Open it again to create a new store.")
    }

    static let notHosted = NodeError(
        code: .notHosted,
        message:
            "This node does not host the store. Open it here first, or call a node that hosts it.")
}
