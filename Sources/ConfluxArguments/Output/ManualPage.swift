extension Program {
    /// The manual page of the program with all its commands, in the language of `man(7)`, without a
    /// final newline.
    public func manualPage() -> String {
        let title = root.name.uppercased()
        var lines = [
            #".TH "\#(title)" 1 "" "\#(roff("\(root.name) \(version)"))""#, ".SH NAME",
            "\(roff(root.name)) \\- \(roff(root.summary))",
        ]
        for place in places {
            lines += place.path.count == 1 ? [".SH SYNOPSIS"] : [#".SS "\#(roff(place.words))""#]
            if place.path.count > 1 { lines.append(paragraph(place.command.summary)) }
            let usage = ([place.words] + synopsis(of: place.command)).joined(separator: " ")
            lines += [".PP", ".B " + roff(usage)]
            if place.path.count == 1 { lines.append(".SH DESCRIPTION") }
            for text in paragraphs(place.command.discussion) { lines += [".PP", paragraph(text)] }
            for parameter in place.command.operands + place.command.options {
                lines += [".TP", ".B " + roff(parameter.form), paragraph(note(parameter))]
            }
            for example in place.command.examples {
                lines += [".PP", paragraph(example.purpose + ":"), ".PP", ".nf", ".RS"]
                lines += [paragraph(example.line), ".RE", ".fi"]
            }
            if place.path.count == 1, !place.command.subcommands.isEmpty {
                lines.append(".SH COMMANDS")
            }
        }
        return lines.joined(separator: "\n")
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
            default: String(character)
            }
        }.joined()
    }
}
