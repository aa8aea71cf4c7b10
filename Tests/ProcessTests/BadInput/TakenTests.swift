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

    @Test(arguments: [true, false])
    func `why a service ends has a time and a level`(isJSON: Bool) async throws {
        try await withWitness { witness in
            let form = isJSON ? ["--json"] : []
            for words in [
                ["sequencer", "--memory", "--bind", witness.address],
                ["worker", "--name", "alpha", "--connect", witness.address],
            ] {
                let child = try witness.site.start(words + form)
                let outcome = try await Tool.outcome(of: child)
                let line = try #require(outcome.errors.last, "\(outcome)")
                if isJSON {
                    let report = try object(line)
                    #expect(report[key: "level"] == "error")
                    #expect(report[key: "time"]?.string?.hasSuffix("Z") == true)
                    #expect(report[key: "error"]?[key: "code"] != nil)
                } else {
                    let start = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z error {3}conflux: \w+/
                    #expect(line.prefixMatch(of: start) != nil, "\(line)")
                }
            }
            // A command that ends by itself has neither.
            let child = try witness.site.start(["observe", "nothing"] + witness.options)
            let line = try #require(try await Tool.outcome(of: child).errors.last)
            #expect(try object(line).object?.count == 1, "\(line)")
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
