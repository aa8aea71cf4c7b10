/// What one command accepts, and what its help says.
///
/// A description is checked when it is made. A contradiction in it (two parameters with one name,
/// an operand after the rest) is a programmer error, and traps.
public struct Command: Sendable {
    /// One example in the help text.
    public struct Example: Sendable {
        /// What the example does, as a phrase.
        public let purpose: String
        /// The command line, as a user types it.
        public let line: String

        /// Makes an example.
        ///
        /// - Parameters:
        ///   - purpose: What the example does, as a phrase.
        ///   - line: The command line, as a user types it.
        public init(_ purpose: String, _ line: String) {
            self.purpose = purpose
            self.line = line
        }
    }

    /// The word that calls the command.
    public let name: String
    /// One sentence, with its full stop.
    public let summary: String
    /// Paragraphs with an empty line between; empty for none.
    public let discussion: String
    /// The examples at the end of the help text.
    public let examples: [Example]
    /// The commands below this one.
    public internal(set) var subcommands: [Command]
    /// Whether the command does something without a subcommand.
    public let runsAlone: Bool
    let parameters: [Parameter]
    let groups: [ExclusiveGroup]
    /// The files that the command reads or writes, for its manual page.
    let files: [Conventions.Note]

    /// Describes a command.
    ///
    /// - Parameters:
    ///   - name: The word that calls it.
    ///   - summary: One sentence, with its full stop.
    ///   - discussion: Paragraphs with an empty line between.
    ///   - parameters: What it accepts. Operands are in their order: required ones, then optional
    ///     ones, then the rest.
    ///   - groups: Which parameters exclude each other.
    ///   - files: The files that it reads or writes, for its manual page.
    ///   - examples: The examples at the end of the help text.
    ///   - subcommands: The commands below it. A command that has some takes no operands.
    ///   - runsAlone: Whether it also does something without a subcommand; a command without
    ///     subcommands always does.
    public init(
        _ name: String, summary: String, discussion: String = "",
        parameters: [any ParameterKey] = [], groups: [ExclusiveGroup] = [],
        files: [Conventions.Note] = [], examples: [Example] = [], subcommands: [Command] = [],
        runsAlone: Bool = false
    ) {
        precondition(
            !name.isEmpty && !name.hasPrefix("-") && !name.contains(" "),
            "'\(name)' can't name a command")
        self.name = name
        self.summary = summary
        self.discussion = discussion
        self.parameters = parameters.map(\.parameter)
        self.groups = groups
        self.files = files
        self.examples = examples
        self.subcommands = subcommands
        self.runsAlone = runsAlone || subcommands.isEmpty
        check()
    }

    /// The options of every command.
    static let builtIn = ["--help", "--version"]
    static let builtInNotes = [
        Conventions.Note("-h, --help", "Show this help."),
        Conventions.Note("-V, --version", "Show the version."),
    ]

    var operands: [Parameter] { parameters.filter { $0.kind == .operand } }
    var options: [Parameter] { parameters.filter { $0.kind != .operand } }

    /// Whether the command has an option of this name.
    package func accepts(_ name: String) -> Bool { options.contains { $0.name == name } }

    func subcommand(_ name: String) -> Command? {
        subcommands.first { $0.name == name }
    }

    func check() {
        var names = Set(Self.builtIn)
        for parameter in parameters {
            precondition(
                names.insert(parameter.name).inserted,
                "\(name) describes \(parameter.name) twice, or it is built in")
        }
        precondition(
            Set(subcommands.map(\.name)).count == subcommands.count,
            "\(name) has two subcommands of one name")
        precondition(
            subcommands.isEmpty || operands.isEmpty,
            "\(name) has subcommands and operands: they could not be told apart")
        precondition(
            runsAlone || parameters.isEmpty,
            "\(name) only groups its subcommands, so options belong to those")
        for (operand, next) in zip(operands, operands.dropFirst()) {
            precondition(
                !operand.presence.isRepeatable
                    && (operand.presence.isRequired || !next.presence.isRequired),
                "\(name): \(next.name) can't follow \(operand.name)")
        }
        for member in groups.flatMap(\.members) {
            precondition(
                names.contains(member.name), "\(name) groups \(member.name) but doesn't accept it")
        }
    }
}
