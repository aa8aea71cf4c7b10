import ConfluxArguments
import Foundation
import Testing

struct CompletionTests {
    /// What the program says to a shell that asks.
    private func answer(_ words: [String], of program: Program = Sample.program) -> String {
        program.completions(of: words).text(with: [])
    }

    /// A command by the program's name, which prints what the program says.
    private func command(answering words: [String]) -> String {
        "conflux() { cat <<'END'\n\(answer(words))\nEND\n}"
    }

    /// What bash itself offers for a line, whose last word is incomplete.
    private func bash(_ words: String...) throws -> Set<String> {
        let script = """
            \(command(answering: Array(words.dropFirst())))
            \(Sample.program.completionScript(for: .bash))
            COMP_WORDS=("$@")
            COMP_CWORD=$(( $# - 1 ))
            _conflux
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let output = try run("bash", ["-c", script, "bash"] + words)
        return Set(output.split(separator: "\n").map(String.init))
    }

    @Test func `bash completes commands and their subcommands`() throws {
        #expect(try bash("conflux", "s") == ["sequencer"])
        #expect(try bash("conflux", "--") == ["--help", "--version"])
        #expect(try bash("conflux", "log", "s") == ["skip"])
        #expect(try bash("conflux", "completions", "") == ["bash", "zsh", "fish"])
    }

    @Test func `bash completes options of the command at hand`() throws {
        #expect(try bash("conflux", "sequencer", "--b") == ["--bind", "--beat-interval"])
        #expect(try bash("conflux", "log", "skip", "--") == ["--help", "--version"])
        #expect(try bash("conflux", "worker", "--connect", "a", "--j") == ["--json"])
    }

    @Test func `bash completes the values of an option`() throws {
        #expect(try bash("conflux", "sequencer", "--durability", "") == ["fsync", "os"])
        #expect(try bash("conflux", "sequencer", "--durability", "=", "o") == ["os"])
        #expect(try bash("conflux", "sequencer", "--durability", "=") == ["fsync", "os"])
        #expect(try bash("conflux", "sequencer", "--bind", "").isEmpty)
    }

    @Test func `bash completes folders for options that take a folder`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "conflux completion \(UUID())")
        try FileManager.default.createDirectory(
            at: folder.appending(path: "one two"), withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data().write(to: folder.appending(path: "one file"))
        let typed = folder.appending(path: "o").path
        #expect(
            try bash("conflux", "sequencer", "--data", typed)
                == [folder.appending(path: "one two").path])
    }

    @Test(.enabled(if: isInstalled("zsh"), "zsh is not installed"))
    func `zsh completes commands, values and folders`() throws {
        func offered(_ words: String...) throws -> [String] {
            let script = """
                \(command(answering: words))
                compdef() { }; compset() { }; _files() { print -- "files $@" }
                _describe() { print -l -- "${offered[@]}" }
                \(Sample.program.completionScript(for: .zsh))
                words=(conflux "$@"); CURRENT=$#words
                _conflux
                """
            return try run("zsh", ["-f", "-c", script, "zsh"] + words)
                .split(separator: "\n").map(String.init)
        }
        #expect(try offered("se") == ["sequencer:Decide the order of actions."])
        #expect(try offered("sequencer", "--durability", "") == ["fsync:", "os:"])
        #expect(try offered("sequencer", "--data", "") == ["files -/"])
        #expect(try offered("worker", "--be").isEmpty)
    }

    @Test(.enabled(if: isInstalled("fish"), "fish is not installed"))
    func `fish completes commands, options and values`() throws {
        func offered(_ words: String...) throws -> Set<String> {
            let answer = answer(words).split(separator: "\n").map { "'\($0)'" }
                .joined(separator: " ")
            let script = """
                function conflux; printf '%s\\n' \(answer); end
                \(Sample.program.completionScript(for: .fish))
                complete -C 'conflux \(words.joined(separator: " "))'
                """
            return Set(
                try run("fish", ["-N", "-c", script]).split(separator: "\n").compactMap {
                    $0.split(separator: "\t").first.map(String.init)
                })
        }
        #expect(try offered("se") == ["sequencer"])
        #expect(try offered("log", "sk") == ["skip"])
        #expect(try offered("sequencer", "--be") == ["--beat-interval"])
        #expect(
            try offered("sequencer", "--durability=") == ["--durability=fsync", "--durability=os"])
        #expect(try offered("worker", "--be").isEmpty)
    }

    @Test func `the answer to a shell has what each word means`() throws {
        #expect(
            answer(["sequencer", "--b"]) == """
                --bind\tWhere nodes connect.
                --beat-interval\tHow often an idle sequencer says that it lives.
                """)
        #expect(answer(["sequencer", "--durability=o"]) == "os\t")
        #expect(answer(["sequencer", "--data", "x"]) == ":folder")
        #expect(try show("__complete", "log", "s") == "skip\tSkip an entry.")
    }

    @Test func `values that only the program can find are asked for`() {
        let name = ValueParser("NAME", expecting: "a name") { $0 }.completing(.asked("names"))
        let asking = Program(
            Command(
                "tool", summary: "S.",
                parameters: [Option("--name", parse: name, summary: "N.")]), version: "1")
        let offer = asking.completions(of: ["--name", "a"])
        #expect(offer.asked == "names")
        #expect(offer.text(with: ["alpha", "beta"]) == "alpha\t")
        #expect(asking.completions(of: [""]).asked == nil)
    }

    @Test func `a value is offered at its place only, and after a letter, too`() {
        func operand(_ name: String, _ kind: String) -> Operand<String> {
            Operand(name, parse: ValueParser.text.completing(.asked(kind)), summary: "O.")
        }
        let asking = Program(
            Command(
                "tool", summary: "S.",
                parameters: [
                    operand("TARGET", "targets"), operand("ACTION", "actions"), Sample.json,
                ]),
            version: "1")
        #expect(asking.completions(of: [""]).asked == "targets")
        let second = asking.completions(of: ["--json", "counter", "a"])
        #expect(second.asked == "actions" && second.operands == ["counter"])
        #expect(asking.completions(of: ["counter", "add", ""]).asked == nil)
        #expect(answer(["log", "-n", ""]).isEmpty)
    }

    @Test func `the completions command prints the script`() throws {
        for shell in Shell.allCases {
            #expect(
                try show("completions", shell.rawValue)
                    == Sample.program.completionScript(for: shell))
        }
        #expect(try mistake("completions", "fih").suggestion == "fish")
    }
}

/// Runs a program to its end, and returns both of its outputs.
private func run(_ program: String, _ arguments: [String]) throws -> String {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return String(decoding: data, as: UTF8.self)
}

private func isInstalled(_ program: String) -> Bool {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
}
