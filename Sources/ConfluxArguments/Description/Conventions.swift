/// What holds for every command of a program. Each list stands in one place, so that a letter, a variable and an exit
/// code have one meaning everywhere.
public struct Conventions: Sendable {
    /// A word and what it means.
    public struct Note: Sendable {
        /// The word: an exit code, a variable, or the path of a file.
        public let term: String
        /// What it means.
        public let text: String

        /// Makes a note.
        ///
        /// - Parameters:
        ///   - term: The word.
        ///   - text: What it means.
        public init(_ term: String, _ text: String) {
            self.term = term
            self.text = text
        }
    }

    /// The letters of options, by their names: `["--follow": "f"]` stands for `-f`.
    public var letters: [String: Character] = [:]
    /// The environment variables of options, by their names: `["--connect": "CONFLUX_CONNECT"]`. Other options have
    /// none.
    public var variables: [String: String] = [:]
    /// The exit codes.
    public var exitCodes: [Note] = []
    /// The variables that the program reads and that give no option.
    public var environment: [Note] = []
    /// The files that the program reads by itself.
    public var files: [Note] = []

    /// Makes conventions: none yet.
    public init() {}

    /// The option with its letter, if it has one: `-f, --follow`.
    func form(of parameter: Parameter) -> String {
        letters[parameter.name].map { "-\($0), \(parameter.form)" } ?? parameter.form
    }

    /// Whether the user means this option by a word: its name, or its letter.
    func isOption(_ parameter: Parameter, _ word: some StringProtocol) -> Bool {
        parameter.name == word || letters[parameter.name].map { "-\($0)" == word } ?? false
    }
}
