import ConfluxArguments
import ConfluxVocabulary
import ConfluxWorker
import Foundation
import Testing

@testable import ConfluxCLI

@Suite struct `The command line` {
    private func mistake(_ words: String...) throws -> UsageError {
        try #require(throws: UsageError.self) { try Tool.program.parse(words) }
    }

    private func help(_ words: String...) throws -> String {
        guard case .show(let text) = try Tool.program.parse(words) else {
            Issue.record("\(words) shows nothing")
            return ""
        }
        return text
    }

    @Test func `help lists every exit code with its meaning`() throws {
        let words = try help("help").split(whereSeparator: \.isWhitespace).joined(separator: " ")
        for code in ExitCode.allCases {
            #expect(words.contains("\(code.rawValue) \(code.summary)"))
        }
        #expect(Set(ExitCode.allCases.map(\.rawValue)).count == ExitCode.allCases.count)
    }

    @Test func `the manual page of a command has each option of its help`() throws {
        let main = try help("help", "--man").replacing("\\-", with: "-")
        for command in Tool.program.root.subcommands {
            #expect(main.contains("\n.B conflux-\(command.name)(1)\n"), "\(command.name)")
            let page = try help("help", "--man", command.name).replacing("\\-", with: "-")
            let text = try help(command.name, "--help")
            for word in text.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "-" })
            where word.hasPrefix("--") {
                #expect(page.contains(word), "\(command.name) \(word)")
            }
        }
    }

    @Test func `no line of a manual page is taken for a request that it is not`() throws {
        let requests: Set = [
            "TH", "SH", "PP", "TP", "B", "nf", "fi", "RS", "RE", "nh", "ad",
        ]
        let pages = [[]] + Tool.program.root.subcommands.map { [$0.name] }
        for words in pages {
            guard case .show(let page) = try Tool.program.parse(["help", "--man"] + words) else {
                Issue.record("\(words) has no page")
                continue
            }
            for line in page.split(separator: "\n") where ".'".contains(line.first ?? " ") {
                let request = line.dropFirst().prefix { $0.isLetter }
                #expect(line.hasPrefix(".") && requests.contains(String(request)), "\(line)")
            }
        }
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/groff")))
    func `groff has no complaint about a manual page`() throws {
        for words in [[], ["dispatch"], ["log", "export"], ["sequencer"]] {
            guard case .show(let page) = try Tool.program.parse(["help", "--man"] + words) else {
                Issue.record("\(words) has no page")
                continue
            }
            let file = try TemporaryFile(page + "\n")
            let process = Process()
            let errors = Pipe()
            process.executableURL = URL(filePath: "/usr/bin/groff")
            process.arguments = ["-man", "-Tutf8", "-ww", "-z", "-k", file.path]
            process.standardError = errors
            try process.run()
            let text = String(
                decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            #expect(process.terminationStatus == 0 && text.isEmpty, "\(words): \(text)")
        }
    }

    @Test func `a letter is listed with an option that exists`() {
        let names = Set(
            Tool.program.root.subcommands.flatMap { [$0] + $0.subcommands }.flatMap {
                command in
                Conventions.conflux.letters.keys.filter { command.accepts($0) }
            })
        #expect(names == Set(Conventions.conflux.letters.keys))
    }

    @Test func `an address may be a host and a port, and a letter stands for its option`() throws {
        guard case .run(let invocation) = try Tool.program.parse(["status", "-wjc", "localhost:1"])
        else { throw Surprise() }
        #expect(invocation[WorkerOptions.connect] == "localhost:1")
        #expect(invocation[StatusCommand.watch] && invocation[WorkerOptions.json])
    }

    private struct Surprise: Error {}

    @Test func `a variable that is named like an option is noted, unless it gives one`() throws {
        guard case .run(let invocation) = try Tool.program.parse(["sequencer", "--memory"])
        else { throw Surprise() }
        let variables = [
            "CONFLUX_BIND": "x", "CONFLUX_KEEP_FOR": "1d", "CONFLUX_SEED": "7",
            "CONFLUX_HTTP": "127.0.0.1:0",
        ]
        #expect(
            invocation.unreadVariables(variables) == [
                "the variable CONFLUX_BIND has no effect: give the option --bind",
                "the variable CONFLUX_KEEP_FOR has no effect: give the option --keep-for",
            ])
    }

    @Test(arguments: [
        ["--connect", "localhost:7400"], ["--context", "here"], ["--curve-secret", "f"],
        ["--server-key", "f"],
    ])
    func `bench measures one sequencer: its own, or the one that is named`(
        other: [String]
    ) async throws {
        for own in [["--memory"], ["--data", "/tmp"]] {
            let error = await #expect(throws: UsageError.self) {
                try await Run.tool(["bench"] + own + other)
            }
            #expect(error?.message.contains(own[0]) == true)
            #expect(error?.message.contains(other[0]) == true)
        }
    }

    @Test func `version prints the version, as JSON when asked to`() async throws {
        let version = ConfluxRelease.version
        #expect(try await Run.tool(["version"]).lines == ["conflux \(version)"])
        #expect(
            try await Run.tool(["version", "-j"]).lines == [#"{"version":"\#(version)"}"#])
    }

    @Test func `actions lists the actions of a state, each with an example that is valid`()
        async throws
    {
        let run = try await Run.tool(["actions", "counter"])
        #expect(
            run.lines == [
                "ACTION                      EXAMPLE",
                #"{"add":{"amount":integer}}  conflux dispatch counter '{"add":{"amount":1}}'"#,
                "decrement                   conflux dispatch counter decrement",
                "increment                   conflux dispatch counter increment",
            ])
        for state in BuiltinStates.hosted.map(\.name) {
            let codec = try #require(BuiltinStates.actions(of: Name(state)!))
            for example in try #require(codec.catalog).examples {
                #expect(throws: Never.self) { _ = try codec.payload(example) }
            }
        }
        #expect(
            try await Run.tool(["actions", "counter/a", "--json"]).lines == [
                #"{"actions":{"add":{"amount":"integer"},"decrement":{},"increment":{}},"schemaVersion":1,"state":"counter"}"#
            ])
    }

    @Test func `the document lists the same exit codes`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(
            contentsOf: root.appending(path: "docs/command-line.md"), encoding: .utf8)
        for code in ExitCode.allCases {
            #expect(text.contains("| \(code.rawValue) | \(code.summary) |\n"))
        }
    }

    @Test(arguments: [
        "sequencer", "worker", "dispatch", "observe", "log", "status", "drop", "freeze", "thaw",
        "reload",
    ])
    func `every command prints JSON when asked to, and gives an example where it is used`(
        _ command: String
    ) throws {
        let text = try help(command, "--help")
        #expect(text.contains("--json"))
        #expect(text.contains("Examples:"))
        #expect(text.contains("CONFLUX_"))
    }

    @Test func `a mistyped option is answered with the one that was meant`() throws {
        #expect(try mistake("worker", "--stor", "counter").suggestion == "--store")
        #expect(try mistake("dispach", "counter").suggestion == "dispatch")
        #expect(
            try mistake("dispatch", "counter/*", "increment", "--wait", "comitted").suggestion
                == "committed")
    }

    @Test func `an action comes from the command line or from a file, not from both`() throws {
        #expect(try mistake("dispatch", "counter/*").code == .missingParameter)
        #expect(
            try mistake("dispatch", "counter/*", "increment", "--file", "x").code == .conflict)
    }

    @Test func `the log is in a folder or in memory, not in both`() throws {
        #expect(try mistake("sequencer").code == .missingParameter)
        #expect(try mistake("sequencer", "--memory", "--data", "x").code == .conflict)
    }

    @Test func `names that can't travel are refused before anything is sent`() throws {
        #expect(try mistake("observe", "Counter").message.contains("1 to 64 characters"))
        #expect(try mistake("dispatch", "a/b/c", "x").message.contains("state/instance"))
        #expect(try mistake("observe", "counter", "--path", "a").message.contains("JSON pointer"))
    }

    @Test func `a range that ends before it begins is a usage error`() async throws {
        let error = await #expect(throws: UsageError.self) {
            try await Run.tool(["log", "--from", "5", "--to", "3"])
        }
        #expect(error?.message == "--from 5 is after --to 3")
    }

    @Test func `a store of a state that the worker does not have is a usage error`() async throws {
        let error = await #expect(throws: UsageError.self) {
            try await Run.tool(["worker", "--store", "conter"])
        }
        #expect(error?.suggestion == "counter")
        #expect(error?.message.contains("counter, document") == true)
    }
}
