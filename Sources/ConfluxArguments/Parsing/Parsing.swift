extension Program {
    /// Reads a command line.
    ///
    /// Before `--`, first `--help` (or `-h`) and then `--version` take precedence over every
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
        if options.contains("--version") {
            return .show("\(root.name) \(version)")
        }
        guard place.command.runsAlone else { throw place.needsCommand(before: rest.first) }

        var collector = Collector(command: place.command, environmentPrefix: environmentPrefix)
        try collector.read(rest)
        try collector.addVariables(environment)
        try collector.checkGroups()
        let invocation = Invocation(
            path: place.path, values: try collector.values(), sources: collector.sources)

        guard place.path.count == 2, !root.subcommands.isEmpty else { return .run(invocation) }
        switch place.command.name {
        case Command.help.name:
            if invocation[Command.manual] { return .show(manualPage()) }
            return .show(try help(on: invocation[Command.helpPath], columns: columns))
        case Command.completionsName:
            return .show(completionScript(for: invocation[Command.shell]))
        default:
            return .run(invocation)
        }
    }

    private func help(on words: [String], columns: Int) throws(Mistake) -> String {
        var place = Place(root)
        var rest = words[...]
        try place.descend(&rest)
        if let word = rest.first { throw place.unknownCommand(word) }
        return help(at: place, columns: columns)
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
    func needsCommand(before word: String?) -> Mistake {
        if let word, word.hasPrefix("-"), word != "--" {
            let name = String(word.prefix { $0 != "=" })
            let takers = command.subcommands.filter { $0.options.contains { $0.name == name } }
            guard let taker = takers.first else {
                return Mistake(
                    code: .unknownOption, message: "there is no option '\(name)'",
                    suggestion: nearest(to: name, in: Command.builtIn))
            }
            return Mistake(
                code: .unknownOption,
                message: "'\(name)' belongs after the command: \(words) \(taker.name) \(name)")
        }
        let names = command.subcommands.map(\.name).joined(separator: ", ")
        return Mistake(code: .missingCommand, message: "a command is missing: one of \(names)")
    }
}
