import Conflux
import Foundation
import Testing

/// Ports, folders and names that another process is using.
struct TakenTests {
    @Test func `a port in use is named`() async throws {
        try await withWitness { witness in
            for option in [
                ["--bind", witness.address],
                ["--bind", "tcp://127.0.0.1:0", "--feed", witness.sequencer.feed],
            ] {
                let child = try witness.site.start(["sequencer", "--memory", "--json"] + option)
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(73), "\(outcome.message)")
                #expect(outcome.message.contains(option.last!), "\(outcome.message)")
                #expect(outcome.output.isEmpty)
            }
        }
    }

    @Test func `a folder in use is refused to another sequencer`() async throws {
        try await withWitness(data: "log") { witness in
            let folder = witness.site.path("log")
            let outcome = try await witness.site.run(
                "sequencer", "--data", folder, "--bind", "tcp://127.0.0.1:0", "--json")
            #expect(outcome.end == .exited(73), "\(outcome.message)")
            #expect(outcome.message.contains(folder), "\(outcome.message)")
            #expect(
                outcome.message.contains("\(witness.sequencer.child.processID)"),
                "\(outcome.message)")
            #expect(outcome.output.isEmpty)
        }
    }

    @Test func `a live node's name is refused to another node`() async throws {
        try await withWitness { witness in
            let outcome = try await witness.run("worker", "--name", "alpha")
            #expect(outcome.end == .exited(85), "\(outcome.message)")
            let error = try object(try #require(outcome.errors.last))[key: "error"]
            #expect(error?[key: "code"] == "nameTaken")
            #expect(error?[key: "message"]?.string?.contains("alpha") == true)
            #expect(outcome.output.isEmpty)
        }
    }
}
