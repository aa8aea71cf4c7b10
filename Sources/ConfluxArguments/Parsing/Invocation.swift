/// What a command line asks for.
public enum Outcome: Sendable {
    /// Run a command with these arguments.
    case run(Invocation)
    /// Print this text, which has no final newline, to standard output and end with success.
    case show(String)
}

/// A command with the values of all its parameters.
public struct Invocation: Sendable {
    /// Where a parameter's value came from.
    public enum Source: Hashable, Sendable {
        /// It was given on the command line.
        case commandLine
        /// It was given by its environment variable.
        case environment
        /// It was not given.
        case absent
    }

    /// The words that call the command, the program's name first.
    public let path: [String]
    let values: [String: any Sendable]
    let sources: [String: Source]

    /// The command, without the program's name: `log skip`; empty for the program itself.
    public var command: String { path.dropFirst().joined(separator: " ") }

    /// The value of a parameter.
    ///
    /// A key that the command does not describe is a programmer error, and traps.
    public subscript<Key: ParameterKey>(key: Key) -> Key.Value {
        guard let slot = values[key.parameter.name] as? Slot<Key.Value> else {
            preconditionFailure(
                "\(path.joined(separator: " ")) does not describe \(key.parameter.name)")
        }
        return slot.value
    }

    /// Whether the command has a parameter of this name.
    public func describes(_ key: some ParameterKey) -> Bool {
        values[key.parameter.name] != nil
    }

    /// Whether the command has an option of this name.
    public func describes(option name: String) -> Bool { values[name] != nil }

    /// Where the value of a parameter came from.
    public func source(of key: some ParameterKey) -> Source {
        sources[key.parameter.name] ?? .absent
    }

    /// The name of the first of some parameters that the command line gives; nil if it gives none.
    public func firstGiven(of keys: [any ParameterKey]) -> String? {
        keys.map(\.parameter.name).first { sources[$0] == .commandLine }
    }

    /// Makes the error for a mistake that only the command itself can judge.
    ///
    /// - Parameters:
    ///   - message: What is wrong and what to do, without a full stop.
    ///   - word: The word that is wrong; nil to suggest none.
    ///   - candidates: The words among which the intended one probably is.
    /// - Returns: The error to throw; its code is `misuse`.
    public func usageError(
        _ message: String, meaning word: String? = nil, of candidates: [String] = []
    ) -> UsageError {
        UsageError(
            code: .misuse, message: message,
            suggestion: word.flatMap { nearest(to: $0, in: candidates) },
            command: path.joined(separator: " "))
    }
}
