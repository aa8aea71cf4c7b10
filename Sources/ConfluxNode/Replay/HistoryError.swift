import ConfluxSystem

/// Why a history can't be written, read or replayed.
public struct HistoryError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// The file can't be read.
        case unreadable
        /// The file can't be written.
        case unwritable
        /// The file is not a history.
        case notAHistory
        /// A newer version of Conflux wrote the file.
        case newerFormat
        /// The file ends too early.
        case cut
        /// The file is not what was written.
        case damaged
        /// The file has entries of another log.
        case otherLog
        /// A state of the file was not given.
        case unknownState
        /// A first state of the file can't be read by the code at hand.
        case unreadableState
        /// The file has no snapshot behind its start, and nothing was recorded; or it has no entry that concerns a store.
        case nothingToCompare
    }

    /// What is wrong.
    public let code: Code
    /// What is wrong, and what to do about it.
    public let message: String

    /// The message.
    public var description: String { message }

    init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    init(reading path: String, _ failure: SystemFailure) {
        code = .unreadable
        message = "The history \(path) can't be read: \(failure.reason(advice: "Give a file."))"
    }

    init(writing path: String, _ failure: SystemFailure) {
        code = .unwritable
        message =
            "The history \(path) can't be written: \(failure.reason(advice: "Give another file."))"
    }
}
