import ConfluxArguments
import Foundation
import Testing

struct CompletionTests {
    /// What bash itself offers for a line, whose last word is incomplete.
    private func bash(_ words: String...) throws -> Set<String> {
        let script = """
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
        #expect(
            try bash("conflux", "completions", "") == [
                "bash", "zsh", "fish", "--help", "--version",
            ])
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
    func `zsh reads its script`() throws {
        #expect(try run("zsh", ["-n", "-c", Sample.program.completionScript(for: .zsh)]).isEmpty)
    }

    @Test func `zsh gets choices, repetition and folders`() {
        let script = Sample.program.completionScript(for: .zsh)
        for line in [
            "#compdef conflux", "('conflux log skip')", "'sequencer:Decide the order of actions.'",
            "'--durability=[When a commit counts as kept.]:fsync|os:(fsync os)'",
            "'*--store=[A store to host.]:STORE: '", "'::ACTION: '",
        ] {
            #expect(script.contains(line))
        }
        #expect(script.contains(":DIR:_files -/'"))
    }

    @Test(.enabled(if: isInstalled("fish"), "fish is not installed"))
    func `fish completes commands, options and values`() throws {
        let script = Sample.program.completionScript(for: .fish)
        func offered(_ line: String) throws -> Set<String> {
            let output = try run("fish", ["-N", "-c", script + "\ncomplete -C '\(line)'"])
            return Set(
                output.split(separator: "\n").compactMap {
                    $0.split(separator: "\t").first.map(String.init)
                })
        }
        #expect(try offered("conflux se") == ["sequencer"])
        #expect(try offered("conflux log sk") == ["skip"])
        #expect(try offered("conflux sequencer --be") == ["--beat-interval"])
        #expect(try offered("conflux sequencer --durability ") == ["fsync", "os"])
        #expect(try offered("conflux worker --be").isEmpty)
    }

    @Test func `a quotation mark in a summary is kept`() {
        let quoting = Program(
            Command(
                "tool", summary: "S.",
                parameters: [Flag("--it", summary: "Don't [ever]: it's \\ new.")]), version: "1")
        #expect(
            quoting.completionScript(for: .zsh).contains(
                #"'--it[Don'\''t \[ever\]\: it'\''s \\ new.]'"#))
        #expect(
            quoting.completionScript(for: .fish).contains(#"-d 'Don\'t [ever]: it\'s \\ new.'"#))
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
