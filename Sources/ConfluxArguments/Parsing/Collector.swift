/// Gathers the values that were given for one command, first from the command line and then from
/// the variables.
struct Collector {
    private let command: Command
    private let conventions: Conventions
    private var texts: [String: [String]] = [:]
    private(set) var sources: [String: Invocation.Source] = [:]

    init(command: Command, conventions: Conventions) {
        self.command = command
        self.conventions = conventions
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
            if second == "-" {
                try readOption(word, &rest)
            } else {
                try readLetters(word, &rest)
            }
        }
        try place(operands)
    }

    /// Reads `--name VALUE`, `--name=VALUE` or `--name`.
    private mutating func readOption(
        _ word: String, _ rest: inout ArraySlice<String>
    ) throws(Mistake) {
        let cut = word.firstIndex(of: "=")
        let name = String(cut.map { word[..<$0] } ?? word[...])
        guard let option = command.options.first(where: { $0.name == name }) else {
            throw unknown(name, meaning: name)
        }
        let attached = cut.map { String(word[word.index(after: $0)...]) }
        if let text = attached ?? (option.kind == .flag ? "true" : nil) {
            try take(option, text)
        } else {
            try take(option, try value(of: option, name, &rest))
        }
    }

    /// Reads `-n VALUE`, `-nVALUE`, or the letters of flags, such as `-fj`.
    private mutating func readLetters(
        _ word: String, _ rest: inout ArraySlice<String>
    ) throws(Mistake) {
        // Somebody who forgets a dash means no letters.
        let long = "-" + word.prefix { $0 != "=" }
        guard !command.options.contains(where: { $0.name == long }) else {
            throw unknown(word, meaning: long)
        }
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            guard
                let option = command.options.first(where: {
                    conventions.letters[$0.name] == letter
                })
            else { throw unknown(word, meaning: long) }
            if option.kind == .flag {
                try take(option, "true")
            } else if letters.isEmpty {
                return try take(option, try value(of: option, "-\(letter)", &rest))
            } else {
                if letters.first == "=" { letters.removeFirst() }
                return try take(option, String(letters))
            }
        }
    }

    /// The word behind an option.
    private func value(
        of option: Parameter, _ name: String, _ rest: inout ArraySlice<String>
    ) throws(Mistake) -> String {
        if let next = rest.first, !next.hasPrefix("--") {
            rest.removeFirst()
            return next
        }
        // A word that looks like an option is not taken as a value: usually the value was
        // forgotten.
        let hint = rest.first.map {
            $0 == "--" ? "" : "; if '\($0)' is the value, write \(option.name)=\($0)"
        }
        throw Mistake(
            code: .missingValue, message: "'\(name)' needs a value: \(option.form)\(hint ?? "")")
    }

    private mutating func take(_ option: Parameter, _ text: String) throws(Mistake) {
        if sources[option.name] != nil, option.kind == .option, !option.presence.isRepeatable {
            throw Mistake(
                code: .repeatedOption, message: "'\(option.name)' is given twice; give it once")
        }
        texts[option.name, default: []].append(text)
        sources[option.name] = .commandLine
    }

    /// The mistake of an option that the command does not have.
    private func unknown(_ word: String, meaning name: String) -> Mistake {
        let names = command.options.map(\.name) + Command.builtIn
        // Each letter is one edit away from every other, so only its case may be wrong.
        let meant =
            word.count == 2
            ? conventions.letters.first { letter in
                names.contains(letter.key) && "-\(letter.value)".lowercased() == word.lowercased()
            }.map { "-\($0.value)" }
            : nearest(to: name, in: names)
        return Mistake(
            code: .unknownOption, message: "there is no option '\(word)'", suggestion: meant)
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
    mutating func addVariables(_ environment: [String: String]) {
        for option in command.options where sources[option.name] == nil {
            guard let variable = conventions.variables[option.name],
                let text = environment[variable], !text.isEmpty
            else { continue }
            texts[option.name] = [text]
            sources[option.name] = .environment
        }
    }

    /// Checks that no exclusive parameters were given together, and that nothing required is
    /// missing.
    func check() throws(Mistake) {
        for group in command.groups {
            let given = group.members.filter { isChosen($0) }
            if given.count > 1 {
                throw Mistake(
                    code: .conflict,
                    message: """
                        '\(given[0].name)' and '\(given[1].name)' can't be used together; give one of \
                        them
                        """)
            }
            if given.isEmpty, group.isRequired {
                let forms = group.members.map(\.form)
                let last = forms[forms.count - 1]
                throw Mistake(
                    code: .missingParameter,
                    message: "\(forms.dropLast().joined(separator: ", ")) or \(last) is missing")
            }
        }
        for parameter in command.parameters
        where parameter.presence.isRequired && sources[parameter.name] == nil {
            let variable = conventions.variables[parameter.name]
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
                let isVariable = sources[parameter.name] == .environment
                let name = isVariable ? conventions.variables[parameter.name] : nil
                throw Mistake(
                    code: .invalidValue, message: "\(name ?? parameter.name): \(error.reason)",
                    suggestion: error.suggestion)
            }
        }
        return values
    }

    /// Whether a parameter of a group was chosen: `--memory=false` does not choose memory, and a variable, which is for
    /// every command, chooses nothing.
    private func isChosen(_ parameter: Parameter) -> Bool {
        sources[parameter.name] == .commandLine
            && (parameter.kind != .flag
                || texts[parameter.name]?.last.flatMap(Flag.truth(of:)) != false)
    }
}
