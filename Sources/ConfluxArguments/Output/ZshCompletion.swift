extension Program {
    func zshCompletion() -> String {
        let function = shellFunction
        let below = places.dropFirst().map { quoted($0.words) }.joined(separator: "|")
        let walk =
            below.isEmpty
            ? ""
            : """

                for word in ${words[2,CURRENT-1]}; do
                    case "$place $word" in
                        (\(below)) place="$place $word"; (( depth++ )) ;;
                        (*) break ;;
                    esac
                done
                (( depth )) && shift $depth words && (( CURRENT -= depth ))
            """
        return """
            #compdef \(root.name)
            \(function)() {
                local place=\(quoted(root.name)) word
                local -i depth=0
                local -a commands\(walk)
                case "$place" in
            \(places.map(branch).joined(separator: "\n"))
                esac
            }
            # Autoloaded from $fpath this file is the function's body; sourced, it registers it.
            if [[ ${funcstack[1]} == \(function) ]]; then
                \(function) "$@"
            else
                compdef \(function) \(root.name)
            fi
            """
    }

    private func branch(at place: Place) -> String {
        let options = place.command.options.map(specification) + Self.builtIn
        let operands = place.command.operands.map(specification)
        let arguments = (options + operands).map { "                \(quoted($0))" }
        var lines = ["        (\(quoted(place.words)))"]
        if !place.command.subcommands.isEmpty {
            let rows = place.command.subcommands.map { command in
                let name = command.name.map { $0.escaped(of: [":", "\\"]) }.joined()
                return "                \(quoted("\(name):\(command.summary)"))"
            }
            lines += ["            commands=("] + rows + ["            )"]
            lines += [
                "            if (( CURRENT == 2 )) && [[ ${words[CURRENT]} != -* ]]; then",
                "                _describe -t commands command commands",
                "                return",
                "            fi",
            ]
        }
        lines.append("            _arguments -S \\")
        lines.append(arguments.joined(separator: " \\\n"))
        lines.append("            ;;")
        return lines.joined(separator: "\n")
    }

    private static let builtIn = [
        "(- *)-h[Show this help.]", "(- *)--help[Show this help.]",
        "(- *)--version[Show the version.]",
    ]

    /// One parameter as `_arguments` reads it.
    private func specification(of parameter: Parameter) -> String {
        let summary = parameter.summary.map { $0.escaped(of: ["[", "]", ":", "\\"]) }.joined()
        let value = parameter.valueName.map { $0.escaped(of: [":", "\\"]) }.joined()
        let action = action(of: parameter.completion)
        switch parameter.kind {
        case .flag: return "\(parameter.name)[\(summary)]"
        case .option:
            let star = parameter.presence.isRepeatable ? "*" : ""
            return "\(star)\(parameter.name)=[\(summary)]:\(value):\(action)"
        case .operand:
            let place = parameter.presence.isRepeatable ? "*" : ""
            let optional = parameter.presence == .optional ? ":" : ""
            return "\(place)\(optional):\(value):\(action)"
        }
    }

    private func action(of completion: Completion) -> String {
        switch completion {
        case .anything: " "
        case .words(let words): "(\(words.joined(separator: " ")))"
        case .file: "_files"
        case .folder: "_files -/"
        case .asked(let kind): #"{compadd -- ${(f)"\#(question(kind))"}}"#
        }
    }
}
