extension Program {
    /// A script that teaches a shell to complete this program's commands, options and values.
    ///
    /// The script contains everything, except values that only the program can know: see
    /// ``Completion/asked(_:)``.
    ///
    /// - Returns: The script without a final newline.
    public func completionScript(for shell: Shell) -> String {
        switch shell {
        case .bash: bashCompletion()
        case .zsh: zshCompletion()
        case .fish: fishCompletion()
        }
    }

    /// The call that prints the values of one kind, as every shell reads it.
    func question(_ kind: String) -> String {
        "$(command \(root.name) \(Self.completeWord) \(kind) 2>/dev/null)"
    }

    /// The word before the kind of values that a completion script asks for. No help text shows it.
    public static let completeWord = "__complete"

    /// Every command: the program first, and each command before its subcommands.
    var places: [Place] {
        var found: [Place] = []
        var open = [Place(root)]
        while let place = open.popLast() {
            found.append(place)
            open += place.command.subcommands.reversed().map(place.below)
        }
        return found
    }

    /// The name of the shell function: the program's name, in characters that every shell allows.
    var shellFunction: String {
        "_" + String(root.name.map { $0 == "-" || $0 == "." ? "_" : $0 })
    }

    /// The names of all options at a place, built-in ones too.
    func optionNames(at place: Place) -> [String] {
        place.command.options.map(\.name) + Command.builtIn
    }
}

/// A text between single quotes, as bash and zsh read it.
func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#)
        + "'"
}

extension Character {
    /// The character, with a backslash before it if it is one of these.
    func escaped(of special: Set<Character>) -> String {
        special.contains(self) ? "\\\(self)" : String(self)
    }
}
