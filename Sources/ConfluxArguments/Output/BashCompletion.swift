extension Program {
    /// Works with the Bash 3.2 of macOS: no `mapfile`, no associative arrays.
    func bashCompletion() -> String {
        let function = shellFunction
        let below = places.dropFirst().map { quoted($0.words) }.joined(separator: " | ")
        let walk =
            below.isEmpty
            ? ""
            : """

                for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
                    case "$place $word" in
                        \(below)) place="$place $word" ;;
                        *) break ;;
                    esac
                done
            """
        return """
            # Bash completion for \(root.name).
            \(function)() {
                local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
                local place=\(quoted(root.name)) word IFS=$'\\n'
                # Bash cuts --name=value into three words.
                if [[ $current == "=" ]]; then
                    current=
                elif [[ $previous == "=" && $COMP_CWORD -gt 2 ]]; then
                    previous=${COMP_WORDS[COMP_CWORD-2]}
                fi
                COMPREPLY=()\(walk)
                case "$place $previous" in
            \(values().joined(separator: "\n"))
                    *) ;;
                esac
                case "$place" in
            \(places.map(words).joined(separator: "\n"))
                    *) ;;
                esac
            }
            complete -F \(function) \(root.name)
            """
    }

    /// The completions of an option's value.
    private func values() -> [String] {
        places.flatMap { place in
            place.command.options.filter { $0.kind == .option }.map { option in
                let reply = reply(option.completion, words: []).map { " \($0);" } ?? ""
                return "        \(quoted("\(place.words) \(option.name)")))\(reply) return ;;"
            }
        }
    }

    /// The other completions at a place: options, commands, and the values of operands.
    private func words(at place: Place) -> String {
        var words = place.command.subcommands.map(\.name) + optionNames(at: place)
        var others: Completion = .anything
        for operand in place.command.operands {
            if case .words(let choices) = operand.completion {
                words = choices + words
            } else if operand.completion != .anything {
                others = operand.completion
            }
        }
        return "        \(quoted(place.words))) \(reply(others, words: words) ?? "return") ;;"
    }

    /// The statement that fills the reply; nil if there is nothing to offer.
    private func reply(_ completion: Completion, words: [String]) -> String? {
        var offered = words
        var (paths, asked) = ("", "")
        switch completion {
        case .anything: break
        case .words(let choices): offered += choices
        case .file: paths = "-f "
        case .folder: paths = "-d "
        case .asked(let kind): asked = #""\#(question(kind))""#
        }
        guard !offered.isEmpty || !paths.isEmpty || !asked.isEmpty else { return nil }
        // In the function, IFS is a newline, so that file names may contain spaces.
        let known = offered.isEmpty ? "" : "$" + quoted(offered.map { $0 + "\\n" }.joined())
        let list = known.isEmpty && asked.isEmpty ? "" : "-W \(known)\(asked) "
        let names = paths.isEmpty ? "" : "compopt -o filenames 2>/dev/null; "
        return "\(names)COMPREPLY=($(compgen \(paths)\(list)-- \"$current\"))"
    }
}
