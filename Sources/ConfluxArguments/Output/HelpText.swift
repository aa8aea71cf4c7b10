extension Program {
    /// The help text of a command, wrapped to the columns, without a final newline.
    func help(at place: Place, columns: Int) -> String {
        let columns = min(max(columns, 80), 100)
        let command = place.command
        var sections = [usage(at: place, columns: columns)]
        sections.append(wrapped(command.summary, columns: columns).joined(separator: "\n"))
        sections += paragraphs(command.discussion).map {
            wrapped($0, columns: columns).joined(separator: "\n")
        }
        sections += [
            table("Commands:", command.subcommands.map { .init($0.name, $0.summary) }, columns),
            table("Arguments:", command.operands.map { .init($0.name, note($0)) }, columns),
            table("Options:", optionRows(at: place), columns),
            place.path.count == 1 ? table("Exit codes:", conventions.exitCodes, columns) : nil,
            examples(command, columns: columns),
        ].compactMap(\.self)
        if !command.subcommands.isEmpty {
            sections.append("'\(place.words) COMMAND --help' tells you more about a command.")
        }
        return sections.joined(separator: "\n\n")
    }

    private func usage(at place: Place, columns: Int) -> String {
        let pieces = [place.words] + synopsis(of: place.command)
        return wrapped(
            pieces: ["Usage: " + pieces[0]] + pieces.dropFirst(), columns: columns,
            indent: "Usage: ".count + place.words.count + 1
        ).joined(separator: "\n")
    }

    /// The parts of a synopsis. No part is broken over lines.
    func synopsis(of command: Command) -> [String] {
        guard command.subcommands.isEmpty else {
            return command.options.map(bracketed) + [command.runsAlone ? "[COMMAND]" : "COMMAND"]
        }
        func group(of parameter: Parameter) -> ExclusiveGroup? {
            command.groups.first { $0.members.contains { $0.name == parameter.name } }
        }
        // A group takes the place of its first operand, or of its first option if it has no
        // operand.
        let free = command.options.filter { option in
            !(group(of: option)?.members.contains { $0.kind == .operand } ?? false)
        }
        var shown: Set<String> = []
        var pieces: [String] = []
        for parameter in free + command.operands where !shown.contains(parameter.name) {
            guard let group = group(of: parameter),
                shown.isDisjoint(with: group.members.map(\.name))
            else {
                shown.insert(parameter.name)
                pieces.append(bracketed(parameter))
                continue
            }
            shown.formUnion(group.members.map(\.name))
            let forms = group.members.map(\.form).joined(separator: " | ")
            pieces.append(group.isRequired ? "(\(forms))" : "[\(forms)]")
        }
        return pieces
    }

    private func bracketed(_ parameter: Parameter) -> String {
        switch parameter.presence {
        case .optional: "[\(parameter.form)]"
        case .required: parameter.form
        case .anyNumber: "[\(parameter.form)]…"
        case .atLeastOne: "\(parameter.form)…"
        }
    }

    /// The options. Those without a letter are indented like those with one.
    private func optionRows(at place: Place) -> [Conventions.Note] {
        let rows = place.command.options.map { option in
            let indent = conventions.letters[option.name] == nil ? "    " : ""
            return Conventions.Note(indent + conventions.form(of: option), note(option))
        }
        return rows + Command.builtInNotes
    }

    /// A parameter's summary, followed in brackets by the other facts about it.
    func note(_ parameter: Parameter) -> String {
        var facts: [String] = []
        if let text = parameter.defaultText { facts.append("default: \(text)") }
        if parameter.kind == .option, parameter.presence.isRepeatable {
            facts.append("repeatable")
        }
        if let variable = conventions.variables[parameter.name] {
            facts.append("environment: \(variable)")
        }
        return facts.isEmpty
            ? parameter.summary : "\(parameter.summary) [\(facts.joined(separator: "; "))]"
    }

    private func examples(_ command: Command, columns: Int) -> String? {
        guard !command.examples.isEmpty else { return nil }
        // A command line is not wrapped, so that it can be copied.
        let lines = command.examples.flatMap { example in
            wrapped("\(example.purpose):", columns: columns - 2).map { "  \($0)" }
                + ["    \(example.line)"]
        }
        return (["Examples:"] + lines).joined(separator: "\n")
    }

    /// Rows in two columns; nil when there are none.
    private func table(
        _ title: String, _ rows: [Conventions.Note], _ columns: Int
    ) -> String? {
        guard !rows.isEmpty else { return nil }
        // A long term gets a line of its own, so that it does not push all texts to the right.
        let termMax = 26
        let width = rows.map(\.term.count).filter { $0 <= termMax }.max() ?? 0
        let margin = String(repeating: " ", count: width + 4)
        var lines = [title]
        for row in rows {
            var texts = wrapped(row.text, columns: columns - margin.count)[...]
            if row.term.count <= width {
                let gap = String(repeating: " ", count: width - row.term.count + 2)
                lines.append("  \(row.term)\(gap)\(texts.popFirst() ?? "")")
            } else {
                lines.append("  \(row.term)")
            }
            lines += texts.map { margin + $0 }
        }
        return lines.joined(separator: "\n")
    }
}
