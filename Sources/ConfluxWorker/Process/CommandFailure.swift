import Conflux
import ConfluxNode
import ConfluxProtocol

/// Why a command fails: a message for people, and codes for scripts.
package struct CommandFailure: Error, Sendable {
    /// The exit code of the process.
    package let exitCode: ExitCode
    /// The kind of failure, as `--json` prints it.
    package let code: String
    /// What happened and what to do.
    package let message: String
    /// The action's place in the log, if it is there.
    package let receipt: Receipt?
    /// The entries that the log lost, if that is the failure.
    package let lost: ClosedRange<SequenceNumber>?
    /// The version that the store had instead of the one that the action names, if that is the failure.
    package let version: StoreVersion?

    /// Makes a failure.
    ///
    /// - Parameters:
    ///   - exitCode: The exit code of the process.
    ///   - code: The kind of failure; nil for the exit code's own name.
    ///   - receipt: The action's place in the log, if it is there.
    ///   - lost: The entries that the log lost, if that is the failure.
    ///   - version: The version that the store had instead of the one that the action names, if that is the failure.
    ///   - message: What happened and what to do.
    package init(
        _ exitCode: ExitCode, code: String? = nil, receipt: Receipt? = nil,
        lost: ClosedRange<SequenceNumber>? = nil, version: StoreVersion? = nil,
        _ message: String
    ) {
        self.exitCode = exitCode
        self.receipt = receipt
        self.lost = lost
        self.version = version
        self.code = code ?? "\(exitCode)"
        self.message = message
    }

    /// Makes the failure of a node.
    package init(_ error: NodeError) {
        let exitCode: ExitCode =
            switch error.code {
            case .invalidAddress, .invalidName: .usage
            case .unreachable: .unreachable
            case .notServing: .logFailed
            case .refused, .closed: .nodeRefused
            case .keyRefused: .notPermitted
            case .openFailed where error.rejection == .notAllowed: .notPermitted
            case .openFailed, .alreadyHosted, .storeStopped, .failed: .failed
            case .journalInUse, .journalUnusable: .cannotCreate
            case .unanswered: error.questionFailure.map { ExitCode($0) } ?? .notFound
            case .otherLog, .notHosted, .dropped: .notFound
            case .timedOut: .timedOut
            case .cancelled: .interrupted
            case .rejected: error.rejection.map { ExitCode($0) } ?? .rejected
            }
        // Distinguish a refused node from a refused action.
        let bye = error.code == .refused ? error.bye.map { "\($0)" } ?? "nodeRefused" : nil
        let rejection = error.code == .rejected ? error.rejection.map { "\($0)" } : nil
        let failure = error.questionFailure.map { "\($0)" }
        self.init(
            exitCode, code: bye ?? rejection ?? failure ?? error.code.rawValue, error.message)
    }

    /// Makes the failure of a question without an answer.
    package init(unanswered failure: QuestionFailure, _ message: String) {
        self.init(ExitCode(failure), code: "\(failure)", "\(message).")
    }

    /// Makes the failure of a key.
    package init(_ error: KeyFileError) {
        let exitCode: ExitCode =
            switch error.code {
            case .exists, .unwritable: .cannotCreate
            case .unreadable, .tooOpen, .notAKey: .noInput
            case .ambiguous: .usage
            }
        self.init(exitCode, code: error.code.rawValue, error.message)
    }

    /// Makes the failure of an action.
    package init(_ error: DispatchError) {
        let reason = error.reason as? RejectionReason
        let exitCode: ExitCode =
            switch error.code {
            case .rejected: reason.map { ExitCode($0.code) } ?? .rejected
            case .withdrawn, .conflict, .leaseLost: .rejected
            case .refused: .refused
            case .invalidAction: .invalidInput
            case .notConnected, .outboxFull: .unreachable
            case .outcomeUnknown, .effectUnknown: .unknownOutcome
            case .storeStopped: .storeStopped
            case .concernedNobody: .concernedNobody
            case .timedOut: .timedOut
            default: .failed
            }
        self.init(
            exitCode, code: reason.map { "\($0.code)" } ?? error.code.rawValue,
            receipt: error.receipt, version: error.version, reason?.message ?? error.message)
    }
}

extension CommandFailure: JSONField {
    /// The kind and the message, and what else scripts may want to know.
    package var json: JSONValue {
        JSONObject([
            "code": code, "from": lost?.lowerBound, "message": message, "through": lost?.upperBound,
            "version": version,
        ]).json
    }
}

/// An error that can end a command.
package protocol CommandError: Error {
    /// The failure of the command that it ends.
    var failure: CommandFailure { get }
}

extension NodeError: CommandError {
    package var failure: CommandFailure { CommandFailure(self) }
}

extension KeyFileError: CommandError {
    package var failure: CommandFailure { CommandFailure(self) }
}

extension PastError: CommandError {
    package var failure: CommandFailure {
        let exitCode: ExitCode =
            switch code {
            case .aboveNewest, .belowFloor, .unknownStore: .notFound
            case .notAnAction: .invalidInput
            case .discarded: .logFailed
            case .unreadableVersion: .rejected
            case .stopped: .storeStopped
            case .notAllowed: .notPermitted
            case .unreachable: .unreachable
            case .timedOut: .timedOut
            case .cancelled: .interrupted
            }
        return CommandFailure(exitCode, code: code.rawValue, message)
    }
}

extension DispatchError: CommandError {
    package var failure: CommandFailure { CommandFailure(self) }
}

/// Does a part of a command's work. What that throws becomes the command's failure.
package func failing<Value, Cause: CommandError>(
    _ work: () throws(Cause) -> Value
) throws(CommandFailure) -> Value {
    do throws(Cause) { return try work() } catch { throw error.failure }
}

/// Does a part of a command's work. What that throws becomes the command's failure.
package func failing<Value, Cause: CommandError>(
    isolation: isolated (any Actor)? = #isolation, _ work: () async throws(Cause) -> Value
) async throws(CommandFailure) -> Value {
    do throws(Cause) { return try await work() } catch { throw error.failure }
}

extension ExitCode {
    /// The exit code after a rejected request.
    package init(_ rejection: RejectionCode) {
        self = rejection == .notAllowed ? .notPermitted : .rejected
    }

    /// The exit code after a question without an answer.
    fileprivate init(_ failure: QuestionFailure) {
        self =
            switch failure {
            case .notHosted, .unknownNode, .noStandby: .notFound
            case .timedOut: .timedOut
            case .notAllowed: .notPermitted
            case .reloadFailed: .noInput
            case .tableFull, .effectUnknown, .tooLarge: .unknownOutcome
            }
    }
}
