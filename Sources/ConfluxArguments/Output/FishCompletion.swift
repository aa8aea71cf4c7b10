extension Program {
    func fishCompletion() -> String {
        let function = "_" + shellFunction + "_at"
        let below = places.dropFirst().map { fishQuoted($0.words) }.joined(separator: " ")
        let walk =
            below.isEmpty
            ? ""
            : """

                for word in $words
                    switch "$place $word"
                        case \(below)
                            set place "$place $word"
                        case '*'
                            break
                    end
                end
            """
        return """
            # Fish completion for \(root.name).
            function \(function)
                set -l words (commandline -opc)
                set -e words[1]
                set -l place \(fishQuoted(root.name))\(walk)
                test "$place" = "$argv"
            end
            complete -c \(root.name) -f
            \(places.flatMap { lines(at: $0, function) }.joined(separator: "\n"))
            """
    }

    private func lines(at place: Place, _ function: String) -> [String] {
        let start =
            "complete -c \(root.name) -n \(fishQuoted("\(function) \(fishQuoted(place.words))"))"
        let commands = place.command.subcommands.map {
            "\(start) -a \(fishQuoted($0.name)) -d \(fishQuoted($0.summary))"
        }
        let parameters = place.command.parameters.compactMap { parameter -> String? in
            let value = value(of: parameter.completion)
            switch parameter.kind {
            case .operand: return value.isEmpty ? nil : start + value
            case .flag: return start + name(parameter)
            case .option:
                let files = parameter.completion == .file ? "-r" : "-x"
                return "\(start)\(name(parameter)) \(files)\(value)"
            }
        }
        return commands + parameters + [
            "\(start) -s h -l help -d 'Show this help.'",
            "\(start) -l version -d 'Show the version.'",
        ]
    }

    private func name(_ parameter: Parameter) -> String {
        " -l \(parameter.name.drop { $0 == "-" }) -d \(fishQuoted(parameter.summary))"
    }

    private func value(of completion: Completion) -> String {
        switch completion {
        case .anything: ""
        case .words(let words): " -a \(fishQuoted(words.joined(separator: " ")))"
        case .file: " -F"
        case .folder: " -a '(__fish_complete_directories)'"
        case .asked(let kind): " -a '\(question(kind).dropFirst())'"
        }
    }

    /// A text between single quotes, in which fish reads `\'` and `\\`.
    private func fishQuoted(_ text: String) -> String {
        "'" + text.map { $0.escaped(of: ["'", "\\"]) }.joined() + "'"
    }
}
