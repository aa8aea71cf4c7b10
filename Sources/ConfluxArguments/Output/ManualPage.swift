extension Program {
    /// The manual page of a command, in the language of `man(7)`, without a final newline.
    func manualPage(of place: Place) -> String {
        let command = place.command
        let options = command.operands + command.options
        var lines = [
            #".TH "\#(roff(page(of: place).uppercased()))" 1 "" "\#(roff("\(root.name) \(version)"))""#,
            // Names of options and kinds are not broken.
            ".nh", ".ad l", ".SH NAME",
            "\(roff(page(of: place))) \\- \(roff(phrase(command.summary)))",
            ".SH SYNOPSIS",
            ".B " + roff(([place.words] + synopsis(of: command)).joined(separator: " ")),
            ".SH DESCRIPTION", paragraph(command.summary),
        ]
        lines += paragraphs(command.discussion).flatMap { [".PP", paragraph($0)] }
        lines += section(
            "COMMANDS",
            command.subcommands.map { .init("\(page(of: place.below($0)))(1)", $0.summary) })
        lines += section(
            "OPTIONS",
            options.map { .init(conventions.form(of: $0), note($0)) } + Command.builtInNotes)
        lines += section("EXIT STATUS", conventions.exitCodes)
        let variables = command.options.compactMap { option in
            conventions.variables[option.name].map {
                Conventions.Note($0, "The value of \(option.name), unless that is given.")
            }
        }
        lines += section("ENVIRONMENT", variables + conventions.environment)
        lines += section("FILES", command.files + conventions.files)
        if !command.examples.isEmpty { lines.append(".SH EXAMPLES") }
        for example in command.examples {
            lines += [".PP", paragraph(example.purpose + ":"), ".PP", ".RS", ".nf"]
            lines += [paragraph(example.line), ".fi", ".RE"]
        }
        let others =
            place.path.count == 1
            ? places.dropFirst() : places.filter { $0.path == Array(place.path.dropLast()) }[...]
        if !others.isEmpty {
            lines += [
                ".SH SEE ALSO", roff(others.map { "\(page(of: $0))(1)" }.joined(separator: ", ")),
            ]
        }
        return lines.joined(separator: "\n")
    }

    /// The name of a command's manual page: `conflux-log-skip`.
    private func page(of place: Place) -> String { place.path.joined(separator: "-") }

    /// A section with a list; nothing if the list is empty.
    private func section(_ title: String, _ notes: [Conventions.Note]) -> [String] {
        guard !notes.isEmpty else { return [] }
        return [".SH \(title)"]
            + notes.flatMap { [".TP", ".B " + roff($0.term), paragraph(sentence($0.text))] }
    }

    /// A sentence without its full stop.
    private func phrase(_ sentence: String) -> String {
        sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
    }

    /// A text with a full stop, unless it ends with a mark already.
    private func sentence(_ text: String) -> String {
        text.last.map { ".]".contains($0) } == true ? text : text + "."
    }

    /// A line of text. Its beginning is never read as a request.
    private func paragraph(_ text: String) -> String {
        let line = roff(text.split(whereSeparator: \.isNewline).joined(separator: " "))
        return line.hasPrefix(".") || line.hasPrefix("'") ? "\\&" + line : line
    }

    /// Text in which every character stands for itself.
    private func roff(_ text: String) -> String {
        text.map { character in
            switch character {
            case "\\": "\\e"
            case "-": "\\-"
            case "'": "\\(aq"
            case "`": "\\(ga"
            case "\"": "\\(dq"
            case "^": "\\(ha"
            case "~": "\\(ti"
            case "…": "\\|.\\|.\\|."
            default: String(character)
            }
        }.joined()
    }
}
