import Conflux
import Foundation
import Testing

/// Invalid actions: each ends in a typed error, and affects nobody else.
struct BadActionTests {
    /// The error with which the one dispatched action failed.
    private func failure(_ outcome: Tool.Outcome) throws -> (code: String, message: String) {
        let line = try object(try #require(outcome.output.first, "\(outcome.message)"))
        #expect(line[key: "line"]?.number == 1)
        let error = try #require(line[key: "error"], "\(outcome.output)")
        return (
            try #require(error[key: "code"]?.string), try #require(error[key: "message"]?.string)
        )
    }

    @Test func `an unknown target is rejected with the names that are known`() async throws {
        try await withWitness { witness in
            for target in ["countr", "nothing/here"] {
                let outcome = try await witness.run("dispatch", target, #"{"go":{}}"#)
                #expect(outcome.end == .exited(80))
                let failure = try failure(outcome)
                #expect(failure.code == "unknownTarget")
                #expect(failure.message.contains(target), "\(failure)")
                #expect(failure.message.contains("counter, document"), "\(failure)")
            }
        }
    }

    @Test func `JSON that is not an action of the state is rejected with the expected form`()
        async throws
    {
        try await withWitness { witness in
            let cases = [
                ("counter", "frobnicate", "one of: add, decrement, increment"),
                ("counter", #"{"add":{"amount":"five"}}"#, "/add/amount"),
                ("counter", #"{"add":{}}"#, "amount"),
                ("counter", #"{"add":{"amount":1"#, "expected"),
                ("document", #"{"set":{"at":"no-slash","value":1}}"#, "JSON pointer"),
                ("document", #"{"set":{"at":"/a","value":{"b":1,"b":2}}}"#, "b"),
                ("document", "[1]", "expected"),
            ]
            for (target, action, expected) in cases {
                let outcome = try await witness.run("dispatch", target, action)
                #expect(outcome.end == .exited(65), "\(action)")
                let failure = try failure(outcome)
                #expect(failure.code == "invalidAction", "\(action): \(failure)")
                #expect(failure.message.contains(expected), "\(action): \(failure)")
            }
        }
    }

    @Test func `a misspelt action of a program's own state is refused before it is in the log`()
        async throws
    {
        try await withSite { site in
            let sequencer = try await site.sequencer(data: "log")
            let worker = try await site.varyingWorker(
                "alpha", hosting: "wordlist", of: sequencer)
            let good = #"{"add":{"word":"a","padding":""}}"#
            try await site.dispatch(lines: [good], to: "wordlist", at: sequencer.address)

            func expectRefusals(at sequencer: RunningSequencer) async throws {
                let options = ["--json", "--connect", sequencer.address]
                func actionCount() async throws -> Int {
                    let log = try await site.run(
                        "log", "--from", "1", "--json", "--connect", sequencer.address)
                    return log.output.count { $0.contains(#""kind":"action""#) }
                }
                let count = try await actionCount()
                for (action, expected) in [
                    ("ad", #"Did you mean "add"?"#),
                    (#"{"add":{"wrod":"a","padding":""}}"#, #"Did you mean "word"?"#),
                    (#"{"add":{"word":"a"}}"#, #"the field "padding" is missing"#),
                    (#"{"add":{"word":5,"padding":""}}"#, "at /add/word: expected string"),
                ] {
                    let child = try site.start(["dispatch", "wordlist/shared", action] + options)
                    let outcome = try await Tool.outcome(of: child)
                    #expect(outcome.end == .exited(65), "\(action): \(outcome.output)")
                    let failure = try failure(outcome)
                    #expect(failure.code == "invalidAction")
                    #expect(failure.message.contains(expected), "\(failure)")
                    #expect(
                        failure.message.contains(#"{"add":{"padding":string,"word":string}}"#),
                        "\(failure)")
                }
                #expect(try await actionCount() == count)
            }
            try await expectRefusals(at: sequencer)

            // A line of a stream is checked, too. A caller that disables the check can send anything.
            let file = try site.write("ad\n\(good)\n", to: "actions.ndjson")
            let stream = try await site.run(
                "dispatch", "wordlist/*", "--file", file, "--json", "--connect", sequencer.address)
            #expect(stream.end == .exited(65), "\(stream.output)")
            #expect(stream.output.count == 2)
            let unchecked = try await site.run(
                "dispatch", "wordlist/*", "ad", "--unchecked", "--wait", "applied", "--connect",
                sequencer.address)
            #expect(unchecked.end == .exited(81), "\(unchecked.message)")

            sequencer.child.signal(SIGKILL)
            _ = try await sequencer.child.end()
            let again = try await site.sequencer(data: "log", at: sequencer)
            _ = try await site.event("reconnected", of: worker)
            try await expectRefusals(at: again)
        }
    }

    @Test func `a payload over the limit is named with the limit`() async throws {
        try await withWitness { witness in
            let text = String(repeating: "x", count: (1 << 20) + 1)
            let file = try witness.site.write(
                #"{"set":{"at":"/large","value":"\#(text)"}}"# + "\n", to: "large.ndjson")
            let here = try await witness.run("dispatch", "document/*", "--file", file)
            #expect(here.end == .exited(65))
            #expect(try failure(here).message.contains("1048576"), "\(here.output)")

            let there = try await witness.run(
                "dispatch", "document/*", "--file", file, "--payload-max", "2MiB")
            #expect(there.end == .exited(80))
            let failure = try failure(there)
            #expect(failure.code == "payloadTooLarge")
            #expect(failure.message.contains("1048576"), "\(failure)")
        }
    }

    @Test func `a refused action is reported when it is waited for`() async throws {
        try await withWitness { witness in
            let outcome = try await witness.run(
                "dispatch", "document/*", #"{"remove":{"at":"/nothing"}}"#, "--wait", "applied")
            #expect(outcome.end == .exited(81))
            let failure = try failure(outcome)
            #expect(failure.code == "refused")
            #expect(failure.message.contains("/nothing"), "\(failure)")
        }
    }

    @Test func `bad lines of a stream are reported by number and the others are applied`()
        async throws
    {
        try await withWitness { witness in
            let lines = [
                "increment", #"{"add":{"amount":10}}"#, "{bad", "", "\u{7}", "frobnicate",
                #"{"add":{"amount":100}}"#,
            ]
            let file = try witness.site.write(
                lines.joined(separator: "\n"), to: "stream.ndjson")
            for arguments in [["--file", file], ["-"]] {
                let child = try witness.site.start(
                    ["dispatch", "counter/*"] + arguments + witness.options, input: .file(file))
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(65), "\(outcome.message)")
                let results = try outcome.output.map(object)
                #expect(
                    results.map { $0[key: "line"]?.number } == [nil, nil, 3, 5, 6, nil],
                    "\(outcome.output)")
                let sequences = results.compactMap { $0[key: "sequence"]?.number }
                #expect(sequences.count == 3 && sequences == sequences.sorted())
            }
            let observed = try await witness.run("observe", "counter", "--node", "alpha")
            #expect(
                try Sighting(try #require(observed.output.first), of: "counter").state
                    == #"{"count":222}"#)
        }
    }

    @Test func `a store that nobody hosts is not found`() async throws {
        try await withWitness { witness in
            let cases = [
                ["observe", "nothing"], ["observe", "counter/other"],
                ["observe", "counter", "--node", "gamma"],
                ["observe", "counter", "--path", "/nothing"],
                ["observe", "nothing", "--follow"],
            ]
            for arguments in cases {
                let outcome = try await Tool.outcome(
                    of: try witness.site.start(arguments + witness.options))
                #expect(outcome.end == .exited(84), "\(outcome.title): \(outcome.message)")
                #expect(outcome.output.isEmpty, "\(outcome.title)")
                _ = try object(try #require(outcome.errors.first, "\(outcome.title)"))
            }
        }
    }
}
