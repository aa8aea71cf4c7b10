import ConfluxArguments
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

    @Test func `the manual page has every command, and each option of its help`() throws {
        let page = try help("help", "--man").replacing("\\-", with: "-")
        for command in Tool.program.root.subcommands {
            #expect(page.contains("\n.SS \"conflux \(command.name)\"\n"), "\(command.name)")
            let text = try help(command.name, "--help")
            for word in text.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "-" })
            where word.hasPrefix("--") && !["--help", "--version"].contains(word) {
                #expect(page.contains(word), "\(command.name) \(word)")
            }
        }
    }

    @Test func `no line of the manual page is taken for a request that it is not`() throws {
        let requests: Set = ["TH", "SH", "SS", "PP", "TP", "B", "nf", "fi", "RS", "RE"]
        for line in try help("help", "--man").split(separator: "\n")
        where ".'".contains(line.first ?? " ") {
            let request = line.dropFirst().prefix { $0.isLetter }
            #expect(line.hasPrefix(".") && requests.contains(String(request)), "\(line)")
        }
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
