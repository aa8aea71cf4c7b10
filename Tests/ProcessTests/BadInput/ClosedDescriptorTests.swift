import Foundation
import Testing

/// Programs that are started with standard input, output or error closed. No socket and no file of theirs may take
/// such a descriptor.
struct ClosedDescriptorTests {
    /// What a shell writes behind a command to close its descriptors.
    enum Closed: String, CaseIterable, CustomTestStringConvertible {
        case input = "<&-"
        case output = ">&-"
        case errors = "2>&-"
        case all = "<&- >&- 2>&-"

        var hasOutput: Bool { self == .input || self == .errors }
        var hasErrors: Bool { self == .input || self == .output }
        var testDescription: String { rawValue }

        /// The words before a program.
        var prefix: [String] { ["/bin/sh", "-c", "exec \"$@\" \(rawValue)", "sh"] }
    }

    private func run(
        _ words: [String], program: String? = nil, _ closed: Closed, _ site: Site
    ) async throws -> Tool.Outcome {
        try await Tool.outcome(
            of: try site.start(words, program: program, behind: closed.prefix))
    }

    /// Expects results where there is an output, and elsewhere the failure to write them.
    private func expectResults(_ outcome: Tool.Outcome, _ closed: Closed) {
        #expect(outcome.end == .exited(closed.hasOutput ? 0 : 74), "\(outcome)")
        #expect(outcome.output.isEmpty != closed.hasOutput, "\(outcome)")
        let isTold =
            outcome.message.contains("output can't be written")
            && outcome.message.contains("Bad file descriptor")
        #expect(isTold == (closed == .output), "\(outcome)")
    }

    @Test(arguments: Closed.allCases)
    func `a program with a closed descriptor does its work and tells what it can't write`(
        closed: Closed
    ) async throws {
        try await withSite { site in
            let sequencer = try await site.sequencer(data: "log")
            _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
            let here = ["--connect", sequencer.address]
            for words in [
                ["status"], ["log"], ["observe", "counter"],
                ["dispatch", "counter", #"{"increment":{}}"#],
            ] {
                expectResults(try await run(words + here, closed, site), closed)
            }
            for words in [
                ["--help"], ["keygen", site.path("pair")],
                ["backup", site.path("copy"), "--data", site.path("log")],
                ["bench", "--data", site.folder, "--single", "10", "--stream", "10"],
            ] {
                expectResults(try await run(words, closed, site), closed)
            }
            for program in ["poll-worker", "conflux-simulate"] {
                expectResults(
                    try await run(["--help"], program: program, closed, site), closed)
            }
            // The files are whole: nothing was written into them instead of an output.
            sequencer.child.signal(SIGTERM)
            #expect(try await sequencer.child.end() == .exited(0))
            for name in ["log", "copy"] {
                let verified = try await site.run("log", "--verify", site.path(name))
                #expect(verified.end == .exited(0), "\(verified)")
            }
        }
    }

    @Test(arguments: Closed.allCases)
    func `a closed input can't be read, and exit codes are right without errors`(
        closed: Closed
    ) async throws {
        try await withSite { site in
            let sequencer = try await site.sequencer()
            _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
            let lines = ["dispatch", "counter", "--file", "-", "--connect", sequencer.address]
            let read = try await run(lines, closed, site)
            if closed == .input || closed == .all {
                #expect(read.end == .exited(66), "\(read)")
                let isTold = read.message.contains(
                    "Standard input can't be read: Bad file descriptor.")
                #expect(isTold == closed.hasErrors, "\(read)")
            } else {
                expectResults(read, closed)
            }
            for (code, words) in [
                (64, ["nonsense"]),
                (84, ["observe", "counter/none", "--connect", sequencer.address]),
            ] {
                let refused = try await run(words, closed, site)
                #expect(refused.end == .exited(Int32(code)), "\(refused)")
                #expect(refused.message.isEmpty != closed.hasErrors, "\(refused)")
            }
        }
    }

    @Test(arguments: Closed.allCases)
    func `a service with a closed descriptor serves, and ends when it is told to`(
        closed: Closed
    ) async throws {
        try await withSite { site in
            let place = "ipc://\(site.path("socket"))"
            let sequencer = try site.start(
                ["sequencer", "--bind", place, "--data", site.path("log")],
                behind: closed.prefix)
            let worker = try site.start(
                ["worker", "--connect", place, "--name", "alpha", "--store", "counter"],
                behind: closed.prefix)
            // Another worker waits until the sequencer serves.
            let running = RunningSequencer(
                child: sequencer, address: place, feed: "\(place).feed", ready: .null)
            _ = try await site.worker("witness", of: running, stores: ["counter"])
            _ = try await site.sightings(of: "counter", at: place, in: ["alpha"], from: 0)
            for child in [worker, sequencer] {
                child.signal(SIGTERM)
                #expect(try await child.end() == .exited(0), "\(child.report)")
            }
        }
    }
}
