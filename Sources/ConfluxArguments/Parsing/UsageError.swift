/// Why a command line can't be run. Its exit code, by custom, is 64.
public struct UsageError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of mistake.
    public enum Code: Hashable, Sendable {
        /// No command of this name.
        case unknownCommand
        /// A command was expected, but the line ended.
        case missingCommand
        /// No option of this name.
        case unknownOption
        /// An option's value was expected.
        case missingValue
        /// A text is not a value of its parameter.
        case invalidValue
        /// An option that has one value was given twice.
        case repeatedOption
        /// A required option, operand or group was not given.
        case missingParameter
        /// There is no place for an operand.
        case unexpectedOperand
        /// Two parameters exclude each other.
        case conflict
        /// A mistake that the command itself found.
        case misuse
    }

    /// The kind of mistake.
    public let code: Code
    /// What is wrong, as a sentence without its full stop.
    public let message: String
    /// What was probably meant; nil if nothing is close.
    public let suggestion: String?
    /// The command that was being read: `conflux sequencer`.
    public let command: String

    /// The message, the suggestion, and where to read more.
    public var description: String {
        // It says itself where to read more.
        guard code != .missingCommand else { return "\(command): \(message)." }
        let meant = suggestion.map { ". Did you mean '\($0)'?" } ?? ""
        return "\(command): \(message)\(meant)\nSee '\(command) --help'."
    }
}

/// A usage error before it is known which command was being read.
struct Mistake: Error {
    let code: UsageError.Code
    let message: String
    var suggestion: String?
}
