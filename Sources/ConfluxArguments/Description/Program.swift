/// A program's whole command line: its commands, its version, its conventions.
///
/// Parsing (``parse(_:environment:columns:)``), the help texts, the did-you-mean messages and the
/// shell completions all come from this one description. Nothing here prints, reads the environment
/// or exits. Your `main` does that, with the result.
///
///     let json = Flag("--json", summary: "Print one JSON value per line.")
///     let tool = Program(
///         Command("tool", summary: "Does one thing.", parameters: [json]), version: "1.0")
///     switch try tool.parse(Array(CommandLine.arguments.dropFirst())) {
///     case .show(let text): print(text)
///     case .run(let arguments): run(json: arguments[json])
///     }
///
/// Each command gets `--help` and `--version`. A program with subcommands gets two more commands:
/// `help [COMMAND…]` and `completions SHELL`.
public struct Program: Sendable {
    /// The command at the top; its name is the program's.
    public let root: Command
    /// What `--version` shows after the program's name.
    public let version: String
    /// What holds for all of its commands.
    public let conventions: Conventions

    /// Describes a program.
    ///
    /// - Parameters:
    ///   - root: The command at the top.
    ///   - version: What `--version` shows.
    ///   - conventions: What holds for all of its commands.
    public init(_ root: Command, version: String, conventions: Conventions = Conventions()) {
        var root = root
        if !root.subcommands.isEmpty {
            root.subcommands += [.help, .completions(of: root.name)]
            root.check()
        }
        self.root = root
        self.version = version
        self.conventions = conventions
        for place in places {
            let letters =
                place.command.options.compactMap { conventions.letters[$0.name] } + ["h", "V"]
            precondition(
                Set(letters).count == letters.count, "\(place.words) has two options of one letter")
        }
    }
}

extension Program {
    /// Makes the error for a mistake that was found before it is known which command was meant.
    ///
    /// - Parameter message: What is wrong and what to do, without a full stop.
    /// - Returns: The error to throw; its code is `misuse`.
    public func usageError(_ message: String) -> UsageError {
        UsageError(code: .misuse, message: message, suggestion: nil, command: root.name)
    }
}

extension Command {
    static let helpPath = Operand(rest: "COMMAND", parse: .text, summary: "The command's name.")
    static let shell = Operand<Shell>(
        "SHELL", parse: .choice, summary: "Which shell: bash, zsh or fish.")

    static let help = Command(
        "help", summary: "Show the help of a command.", parameters: [helpPath, manual])
    static let manual = Flag(
        "--man", summary: "Print the manual page of the command, in the format of man.")

    static let completionsName = "completions"

    static func completions(of program: String) -> Command {
        Command(
            completionsName, summary: "Print a completion script for a shell.",
            parameters: [shell],
            examples: [
                .init("Bash, in ~/.bashrc", #"eval "$(\#(program) completions bash)""#),
                .init(
                    "Zsh, in ~/.zshrc after compinit", "source <(\(program) completions zsh)"),
                .init(
                    "Fish",
                    "\(program) completions fish > ~/.config/fish/completions/\(program).fish"),
            ])
    }
}

/// A shell for which a completion script can be made.
public enum Shell: String, CaseIterable, Sendable {
    /// GNU Bash, 3.2 or later.
    case bash
    /// Z shell.
    case zsh
    /// Friendly interactive shell, 3.0 or later.
    case fish
}
