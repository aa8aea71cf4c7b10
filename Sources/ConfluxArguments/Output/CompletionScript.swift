/// What a shell can offer in place of the last word of a line, which is incomplete.
public struct Completions: Sendable {
    /// The beginning of the word.
    let typed: String
    /// Each word and, behind a tab, what it means. `:file` and `:folder` stand for names that the shell finds itself.
    let lines: [String]
    /// The kind of values that only the program can find; nil if there are none. See ``Completion/asked(_:)``.
    public let asked: String?
    /// The operands before the word.
    public let operands: [String]

    /// What the shell's script reads.
    ///
    /// - Parameter names: The values of the kind ``asked``.
    /// - Returns: Lines without a final newline; empty if there is nothing to offer.
    public func text(with names: [String] = []) -> String {
        (lines + names.map { "\($0)\t" }).filter { $0.hasPrefix(typed) || $0.first == ":" }
            .joined(separator: "\n")
    }
}

extension Program {
    /// The word before the words of a line that a shell completes. No help text shows it.
    public static let completeWord = "__complete"

    /// Finds what can stand at the end of a line: commands, options, and values.
    ///
    /// - Parameter words: The words behind the program's name. The last one is incomplete.
    /// - Returns: What a shell can offer.
    public func completions(of words: [String]) -> Completions {
        var rest = Self.separated(words)[...]
        let typed = rest.popLast() ?? ""
        var place = Place(root)
        while let word = rest.first, let subcommand = place.command.subcommand(word) {
            place = place.below(subcommand)
            rest.removeFirst()
        }
        let command = place.command
        let (operands, option) = read(rest, of: command)
        let operand =
            command.operands.dropFirst(operands.count).first
            ?? command.operands.last.flatMap { $0.presence.isRepeatable ? $0 : nil }
        var lines: [String] = []
        var asked: String?
        switch (option ?? operand)?.completion {
        case .anything, nil: break
        case .words(let words): lines += words.map { "\($0)\t" }
        case .file: lines.append(":file")
        case .folder: lines.append(":folder")
        case .asked(let kind): asked = kind
        }
        if option == nil {
            lines += command.subcommands.map { "\($0.name)\t\($0.summary)" }
            if lines.isEmpty && asked == nil || typed.hasPrefix("-") {
                lines += command.options.map { "\($0.name)\t\($0.summary)" }
                lines += ["--help\tShow this help.", "--version\tShow the version."]
            }
        }
        return Completions(typed: typed, lines: lines, asked: asked, operands: operands)
    }

    /// Reads the words between a command and the one that is typed.
    ///
    /// - Returns: The operands, and the option whose value is typed; nil if it is no option's.
    private func read(
        _ words: ArraySlice<String>, of command: Command
    ) -> (operands: [String], open: Parameter?) {
        var operands: [String] = []
        var open: Parameter?
        for word in words {
            if open != nil {
                open = nil
            } else if word.hasPrefix("-"), word != "-" {
                open = command.options.first {
                    $0.kind == .option && conventions.isOption($0, word)
                }
            } else {
                operands.append(word)
            }
        }
        return (operands, open)
    }

    /// The same line without the equals signs between options and their values. Bash makes a word of its own of each.
    private static func separated(_ words: [String]) -> [String] {
        let parts = words.flatMap { word -> [String] in
            guard word.hasPrefix("--"), let cut = word.firstIndex(of: "=") else { return [word] }
            return [String(word[..<cut]), String(word[word.index(after: cut)...])]
        }
        return parts.filter { $0 != "=" } + (parts.last == "=" ? [""] : [])
    }

    /// A script by which a shell completes lines of this program. It asks the program what to offer.
    ///
    /// - Returns: The script without a final newline.
    public func completionScript(for shell: Shell) -> String {
        let name = root.name
        let function = "_" + String(name.map { $0 == "-" || $0 == "." ? "_" : $0 })
        let call = "\(name) \(Self.completeWord)"
        return switch shell {
        // Works with the Bash 3.2 of macOS.
        case .bash:
            """
            # Bash completion for \(name).
            \(function)() {
                local IFS=$'\\n' current=${COMP_WORDS[COMP_CWORD]} line
                [[ $current == "=" ]] && current=
                COMPREPLY=()
                while IFS= read -r line; do
                    case $line in
                        :file | :folder)
                            compopt -o filenames 2>/dev/null
                            if [[ $line == :file ]]; then
                                COMPREPLY+=($(compgen -f -- "$current"))
                            else
                                COMPREPLY+=($(compgen -d -- "$current"))
                            fi ;;
                        # JSON, which the shell would take apart.
                        \\{*) COMPREPLY+=("'${line%%$'\\t'*}'") ;;
                        ?*) COMPREPLY+=("${line%%$'\\t'*}") ;;
                    esac
                done < <(\(call) "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
            }
            complete -F \(function) \(name)
            """
        case .zsh:
            """
            #compdef \(name)
            \(function)() {
                local line
                local -a offered
                local -a lines=("${(@f)$(\(call) "${(@)words[2,CURRENT]}" 2>/dev/null)}")
                compset -P '--*='
                for line in $lines; do
                    case $line in
                        (:file) _files ;;
                        (:folder) _files -/ ;;
                        (*) offered+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}") ;;
                    esac
                done
                (( ${#offered} )) && _describe -t values value offered
            }
            # Autoloaded from $fpath this file is the function's body; sourced, it registers it.
            if [[ ${funcstack[1]} == \(function) ]]; then
                \(function) "$@"
            else
                compdef \(function) \(name)
            fi
            """
        case .fish:
            """
            # Fish completion for \(name).
            function _\(function)
                set -l words (commandline -opc)
                set -l token (commandline -ct)
                set -l option (string match -r -- '^--[^=]*=' $token)
                for line in (\(call) $words[2..-1] "$token" 2>/dev/null)
                    switch $line
                        case :file
                            __fish_complete_path (string replace -- "$option" '' "$token")
                        case :folder
                            __fish_complete_directories (string replace -- "$option" '' "$token")
                        case '?*'
                            echo -- "$option$line"
                    end
                end
            end
            complete -c \(name) -f -a '(_\(function))'
            """
        }
    }

    /// Every command: the program first, and each command before its subcommands.
    var places: [Place] {
        var found: [Place] = []
        var open = [Place(root)]
        while let place = open.popLast() {
            found.append(place)
            open += place.command.subcommands.reversed().map(place.below)
        }
        return found
    }
}
