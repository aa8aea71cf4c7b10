import CZeroMQ
import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// How each command ends on a signal.
    struct EndingTests {
        @Test(arguments: [SIGINT, SIGTERM])
        func `a sequencer ends cleanly`(signal: Int32) async throws {
            try await withSite { site in
                let first = try await site.sequencer(data: "log")
                let worker = try await site.worker("alpha", of: first)
                let sequence = try await site.dispatch(
                    "increment", to: "counter", at: first.address)
                first.child.signal(signal)
                let outcome = try await Tool.outcome(of: first.child)
                #expect(outcome.end == .exited(0), "\(outcome.message)")
                #expect(try object(outcome.output.last ?? "")[key: "event"] == "stopped")
                #expect(outcome.errors.isEmpty)

                // The log was closed and is complete, and the worker finds the new sequencer.
                let second = try await site.sequencer(data: "log", at: first)
                _ = try await worker.child.output.first { line in
                    try object(line)[key: "event"] == "reconnected"
                }
                let sightings = try await site.sightings(
                    of: "counter", at: second.address, in: ["alpha"], from: sequence)
                #expect(sightings.map(\.state) == [#"{"count":1}"#])
                #expect(worker.child.isRunning)
            }
        }

        @Test(arguments: [SIGINT, SIGTERM])
        func `a worker leaves`(signal: Int32) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let worker = try await site.worker("alpha", of: sequencer)
                worker.child.signal(signal)
                let outcome = try await Tool.outcome(of: worker.child)
                #expect(outcome.end == .exited(0), "\(outcome.message)")
                #expect(outcome.errors.isEmpty)
                _ = try await sequencer.child.output.first { line in
                    let event = try object(line)
                    return event[key: "event"] == "left" && event[key: "name"] == "alpha"
                }
                #expect(try await site.liveNodes(at: sequencer.address).isEmpty)
            }
        }

        @Test func `a finished stream leaves no session`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer)
                let line = try site.write("increment\n", to: "line")
                for _ in 0..<10 {
                    let done = try await site.run(
                        "dispatch", "counter/*", "--file", line, "--wait", "applied", "--connect",
                        sequencer.address)
                    #expect(done.end == .exited(0), "\(done.message)")
                }
                // The sequencer notices a silent end much later. A node that says bye leaves with the next
                // entry.
                var present: Set<UInt64> = []
                var count = 0
                _ = try await sequencer.child.output.first(within: .seconds(5)) { line in
                    let event = try object(line)
                    guard let node = event[key: "incarnation"]?.number,
                        event[key: "name"] == nil
                    else { return false }
                    if event[key: "event"] == "joined" {
                        present.insert(node)
                        count += 1
                    } else {
                        present.remove(node)
                    }
                    return count == 10 && present.count <= 1
                }
            }
        }

        @Test(arguments: [SIGINT, SIGTERM])
        func `following a log ends without an error`(signal: Int32) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer)
                for command in [["observe", "counter", "--follow"], ["log", "--follow"]] {
                    let child = try site.start(
                        command + ["--json", "--connect", sequencer.address])
                    _ = try await child.output.line(0)
                    child.signal(signal)
                    let outcome = try await Tool.outcome(of: child)
                    #expect(outcome.end == .exited(0), "\(outcome.title): \(outcome.message)")
                    #expect(outcome.errors.isEmpty, "\(outcome.title): \(outcome.message)")
                }
            }
        }

        @Test(arguments: [SIGINT, SIGTERM])
        func `a command without an end may be ended before it is connected`(signal: Int32)
            async throws
        {
            try await withSite { site in
                for words in [
                    ["observe", "counter", "--follow"], ["log", "--follow"], ["status", "--watch"],
                    ["worker"],
                ] {
                    let silent = try RawPeer(ZMQ_ROUTER)
                    let child = try site.start(words + ["--connect", try silent.bind()])
                    // It says hello, and gets no answer.
                    try #require(silent.receive() != nil)
                    child.signal(signal)
                    let outcome = try await Tool.outcome(of: child)
                    #expect(outcome.end == .exited(0), "\(outcome.title): \(outcome.message)")
                    #expect(outcome.errors.isEmpty, "\(outcome.title): \(outcome.message)")
                }
                let silent = try RawPeer(ZMQ_ROUTER)
                let terminal = try Terminal(["top", "--connect", try silent.bind()])
                try #require(silent.receive() != nil)
                terminal.signal(signal)
                #expect(try terminal.end().code == 0)
            }
        }

        @Test(arguments: [(SIGINT, Int32(130)), (SIGTERM, Int32(143))])
        func `an interrupted dispatch prints the receipts that it has`(
            signal: Int32, exitCode: Int32
        ) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer)
                let child = try site.start(
                    ["dispatch", "counter/*", "-", "--json", "--connect", sequencer.address],
                    input: .pipe)
                child.feed(["increment", "increment"])
                _ = try await child.output.line(1)
                child.signal(signal)
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(exitCode), "\(outcome.message)")
                let sequences = try outcome.output.compactMap {
                    try object($0)[key: "sequence"]?.number
                }
                #expect(sequences.count == 2)
            }
        }

        @Test func `a command whose output nobody reads ends`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer)
                let reader = try Child(
                    "/bin/sh",
                    [
                        "-c", #""$1" log --follow --json --connect "$2" | head -n 1; echo done"#,
                        "sh", Tool.path, sequencer.address,
                    ], environment: Tool.environment)
                _ = try await reader.output.line(0)
                // Nobody reads the next entry that it writes.
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                let outcome = try await Tool.outcome(of: reader)
                #expect(outcome.output.last == "done")
                #expect(outcome.errors.isEmpty, "\(outcome.message)")
            }
        }
    }
}
