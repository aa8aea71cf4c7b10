extension Program {
    /// A script that teaches a shell to complete this program's commands, options and values.
    ///
    /// It asks nothing of the program when it runs: all that it knows is in it.
    ///
    /// - Returns: The script without a final newline.
    public func completionScript(for shell: Shell) -> String {
        switch shell {
        case .bash: bashCompletion()
        case .zsh: zshCompletion()
        case .fish: fishCompletion()
        }
    }

    /// Every command, the program first, each before those below it.
    var places: [Place] {
        var found: [Place] = []
        var open = [Place(root)]
        while let place = open.popLast() {
            found.append(place)
            open += place.command.subcommands.reversed().map(place.below)
        }
        return found
    }

    /// The name of the shell function: the program's, in the letters that every shell allows.
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
    /// The character with a backslash before it when it is one of these.
    func escaped(of special: Set<Character>) -> String {
        special.contains(self) ? "\\\(self)" : String(self)
    }
}
