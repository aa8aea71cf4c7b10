extension Program {
    /// Reads a command line.
    ///
    /// Before `--`, first `--help` (or `-h`) and then `--version` (or `-V`) take precedence over every
    /// mistake after the command's name, so that both work whatever else is wrong. The command line
    /// takes precedence over the environment. A variable that is set but empty counts as not set.
    ///
    /// - Parameters:
    ///   - arguments: The words after the program's name.
    ///   - environment: The process's environment.
    ///   - columns: The width of help texts, limited to 80…100.
    /// - Returns: What to run or to show.
    /// - Throws: The first mistake on the line, in a form that you can print.
    public func parse(
        _ arguments: [String], environment: [String: String] = [:], columns: Int = 80
    ) throws(UsageError) -> Outcome {
        var place = Place(root)
        do {
            return try read(
                arguments, environment: environment, columns: columns, place: &place)
        } catch {
            throw UsageError(
                code: error.code, message: error.message, suggestion: error.suggestion,
                command: place.words)
        }
    }

    private func read(
        _ arguments: [String], environment: [String: String], columns: Int, place: inout Place
    ) throws(Mistake) -> Outcome {
        if arguments.first == Self.completeWord {
            return .show(completions(of: Array(arguments.dropFirst())).text())
        }
        var rest = arguments[...]
        try place.descend(&rest)
        let options = rest.prefix { $0 != "--" }
        if options.contains("--help") || options.contains("-h") {
            return .show(help(at: place, columns: columns))
        }
        if options.contains("--version") || options.contains("-V") {
            return .show("\(root.name) \(version)")
        }
        guard place.command.runsAlone else { throw place.needsCommand(before: rest) }

        var collector = Collector(command: place.command, conventions: conventions)
        try collector.read(rest)
        collector.addVariables(environment)
        try collector.check()
        let invocation = Invocation(
            path: place.path, values: try collector.values(), sources: collector.sources)

        guard place.path.count == 2, !root.subcommands.isEmpty else { return .run(invocation) }
        switch place.command.name {
        case Command.help.name:
            let words = invocation[Command.helpPath]
            guard invocation[Command.manual] else {
                return .show(try help(on: words, columns: columns))
            }
            return .show(manualPage(of: try self.place(of: words)))
        case Command.completionsName:
            return .show(completionScript(for: invocation[Command.shell]))
        default:
            return .run(invocation)
        }
    }

    private func help(on words: [String], columns: Int) throws(Mistake) -> String {
        help(at: try place(of: words), columns: columns)
    }

    /// The command that these words name.
    private func place(of words: [String]) throws(Mistake) -> Place {
        var place = Place(root)
        var rest = words[...]
        try place.descend(&rest)
        if let word = rest.first { throw place.unknownCommand(word) }
        return place
    }
}

/// A command and the words that lead to it.
struct Place {
    private(set) var path: [String]
    private(set) var command: Command

    init(_ root: Command) {
        path = [root.name]
        command = root
    }

    var words: String { path.joined(separator: " ") }

    /// The place of a subcommand.
    func below(_ subcommand: Command) -> Place {
        var place = self
        place.path.append(subcommand.name)
        place.command = subcommand
        return place
    }

    /// Follows the words that name subcommands.
    mutating func descend(_ words: inout ArraySlice<String>) throws(Mistake) {
        while let word = words.first, !word.hasPrefix("-"), !command.subcommands.isEmpty {
            guard let subcommand = command.subcommand(word) else { throw unknownCommand(word) }
            self = below(subcommand)
            words.removeFirst()
        }
    }

    func unknownCommand(_ word: String) -> Mistake {
        let names = command.subcommands.map(\.name)
        guard !names.isEmpty else {
            return Mistake(
                code: .unknownCommand,
                message: "the command has no subcommands; '\(word)' is unexpected")
        }
        return Mistake(
            code: .unknownCommand, message: "there is no command '\(word)'",
            suggestion: nearest(to: word, in: names))
    }

    /// The mistake of a line that ends, or continues with an option, where a command must stand.
    func needsCommand(before rest: ArraySlice<String>) -> Mistake {
        if let word = rest.first, word.hasPrefix("-"), word != "--" {
            let name = String(word.prefix { $0 != "=" })
            let takers = command.subcommands.filter { $0.options.contains { $0.name == name } }
            // The command that was typed behind the option, or else any that takes it.
            guard let taker = takers.first(where: { rest.contains($0.name) }) ?? takers.first else {
                return Mistake(
                    code: .unknownOption, message: "there is no option '\(name)'",
                    suggestion: nearest(to: name, in: Command.builtIn))
            }
            return Mistake(
                code: .unknownOption,
                message: "'\(name)' belongs after the command: \(words) \(taker.name) \(name)")
        }
        let width = command.examples.map(\.line.count).max() ?? 0
        let examples = command.examples.map { example in
            "\n  " + example.line.padded(to: width) + "  " + example.purpose
        }
        return Mistake(
            code: .missingCommand,
            message: examples.isEmpty
                ? "a command is missing: \(command.subcommands.map(\.name).joined(separator: ", "))"
                : "a command is missing. To begin with:\(examples.joined())\n"
                    + "'\(words) help' lists all commands, and '\(words) COMMAND --help' describes one"
        )
    }
}
