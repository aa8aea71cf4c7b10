/// Gathers the values that were given for one command, first from the command line and then from
/// the variables.
struct Collector {
    private let command: Command
    private let environmentPrefix: String
    private var texts: [String: [String]] = [:]
    private(set) var sources: [String: Invocation.Source] = [:]

    init(command: Command, environmentPrefix: String) {
        self.command = command
        self.environmentPrefix = environmentPrefix
    }

    /// Reads the words after the command's name.
    mutating func read(_ words: ArraySlice<String>) throws(Mistake) {
        var rest = words
        var operands: [String] = []
        while let word = rest.popFirst() {
            if word == "--" {
                operands += rest
                break
            }
            // A single dash and negative numbers are operands.
            let second = word.dropFirst().first
            guard word.first == "-", let second, !("0"..."9").contains(second) else {
                operands.append(word)
                continue
            }
            try readOption(word, &rest)
        }
        try place(operands)
    }

    private mutating func readOption(
        _ word: String, _ rest: inout ArraySlice<String>
    ) throws(Mistake) {
        let cut = word.firstIndex(of: "=")
        let name = String(cut.map { word[..<$0] } ?? word[...])
        let attached = cut.map { String(word[word.index(after: $0)...]) }
        guard let option = command.options.first(where: { $0.name == name }) else {
            throw Mistake(
                code: .unknownOption, message: "there is no option '\(name)'",
                suggestion: nearest(to: name, in: command.options.map(\.name) + Command.builtIn))
        }
        let text: String
        if let attached {
            text = attached
        } else if option.kind == .flag {
            text = "true"
        } else if let next = rest.first, !next.hasPrefix("--") {
            text = next
            rest.removeFirst()
        } else {
            // A word that looks like an option is not taken as a value: usually the value was
            // forgotten.
            let hint = rest.first.map {
                $0 == "--" ? "" : "; if '\($0)' is the value, write \(name)=\($0)"
            }
            throw Mistake(
                code: .missingValue,
                message: "'\(name)' needs a value: \(option.form)\(hint ?? "")")
        }
        if sources[name] != nil, option.kind == .option, !option.presence.isRepeatable {
            throw Mistake(
                code: .repeatedOption, message: "'\(name)' is given twice; give it once")
        }
        texts[name, default: []].append(text)
        sources[name] = .commandLine
    }

    private mutating func place(_ words: [String]) throws(Mistake) {
        var rest = words[...]
        for operand in command.operands where !rest.isEmpty {
            let taken = operand.presence.isRepeatable ? rest : rest.prefix(1)
            texts[operand.name] = Array(taken)
            sources[operand.name] = .commandLine
            rest = rest.dropFirst(taken.count)
        }
        guard let word = rest.first else { return }
        if command.subcommand(word) != nil {
            throw Mistake(
                code: .unexpectedOperand,
                message: "the command '\(word)' belongs before the options")
        }
        throw Mistake(
            code: .unexpectedOperand, message: "unexpected argument '\(word)'")
    }

    /// Takes from the environment what the command line did not give.
    mutating func addVariables(_ environment: [String: String]) throws(Mistake) {
        let given = Set(sources.keys)
        let silenced = command.groups.filter { $0.members.contains { isGiven($0) } }
            .flatMap { $0.members.map(\.name) }
        for option in command.options where !given.contains(option.name) {
            guard let variable = option.variable(prefix: environmentPrefix),
                let text = environment[variable], !text.isEmpty, !silenced.contains(option.name)
            else { continue }
            // If a variable says false, the flag was not given.
            if option.kind == .flag, Flag.truth(of: text) == false { continue }
            let values = option.presence.isRepeatable ? listed(text) : [text]
            guard !values.isEmpty else { continue }
            texts[option.name] = values
            sources[option.name] = .environment
        }
    }

    /// Checks that no exclusive parameters were given together, and that nothing required is
    /// missing.
    func checkGroups() throws(Mistake) {
        for group in command.groups {
            let given = group.members.filter { isGiven($0) }
            if given.count > 1 {
                let names = "'\(origin(of: given[0]))' and '\(origin(of: given[1]))'"
                throw Mistake(
                    code: .conflict, message: "\(names) can't be used together; give one of them")
            }
            if given.isEmpty, group.isRequired {
                let forms = group.members.map(\.form).joined(separator: " or ")
                throw Mistake(code: .missingParameter, message: "\(forms) is missing")
            }
        }
        for parameter in command.parameters
        where parameter.presence.isRequired && sources[parameter.name] == nil {
            let variable = parameter.variable(prefix: environmentPrefix)
            let hint = variable.map { "; give it, or set \($0)" } ?? ""
            throw Mistake(
                code: .missingParameter, message: "\(parameter.form) is missing\(hint)")
        }
    }

    /// Makes the typed values, in boxes.
    func values() throws(Mistake) -> [String: any Sendable] {
        var values: [String: any Sendable] = [:]
        for parameter in command.parameters {
            do {
                values[parameter.name] = try parameter.resolve(texts[parameter.name] ?? [])
            } catch {
                throw Mistake(
                    code: .invalidValue, message: "\(origin(of: parameter)): \(error.reason)",
                    suggestion: error.suggestion)
            }
        }
        return values
    }

    /// Whether a parameter counts in its group: `--memory=false` does not choose memory.
    private func isGiven(_ parameter: Parameter) -> Bool {
        guard sources[parameter.name] != nil else { return false }
        return parameter.kind != .flag
            || texts[parameter.name]?.last.flatMap(Flag.truth(of:)) != false
    }

    /// How the user gave the parameter: its name, or the name of its variable.
    private func origin(of parameter: Parameter) -> String {
        guard sources[parameter.name] == .environment else { return parameter.name }
        return parameter.variable(prefix: environmentPrefix) ?? parameter.name
    }
}

/// The values of a list separated by commas. Spaces around a value don't belong to it.
private func listed(_ text: String) -> [String] {
    text.split(separator: ",").compactMap { value in
        let start = value.drop { $0 == " " }
        guard let last = start.lastIndex(where: { $0 != " " }) else { return nil }
        return String(start[...last])
    }
}
