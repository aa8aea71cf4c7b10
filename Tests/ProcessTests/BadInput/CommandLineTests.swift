import Foundation
import Testing

/// Mistakes on the command line: they are reported at once, before anything is sent, with an exit code.
struct CommandLineTests {
    @Test(arguments: [
        (["sequencer", "--memroy"], "--memory"), (["worker", "--nane", "alpha"], "--name"),
        (["dispatch", "counter/*", "increment", "--conect", "x"], "--connect"),
        (["observe", "counter", "--folow"], "--follow"), (["log", "--form", "1"], "--from"),
        (["status", "--jsn"], "--json"), (["statsu"], "status"),
    ])
    func `a mistyped word is answered with the intended one`(
        arguments: [String], meant: String
    ) async throws {
        let outcome = try await Tool.outcome(of: try Tool.start(arguments))
        #expect(outcome.end == .exited(64))
        #expect(outcome.message.contains("Did you mean '\(meant)'?"), "\(outcome.message)")
        #expect(outcome.output.isEmpty)
    }

    @Test(arguments: [
        ["status"], ["observe", "counter"], ["log"], ["worker", "--name", "alpha"],
        ["dispatch", "counter/*", "increment"],
    ])
    func `an invalid address is refused`(command: [String]) async throws {
        for address in ["nonsense", "tcp://127.0.0.1", "tcp://127.0.0.1:99999"] {
            let outcome = try await Tool.outcome(
                of: try Tool.start(command + ["--connect", address]))
            #expect(outcome.end == .exited(64), "\(outcome.title): \(outcome.message)")
            #expect(outcome.message.contains(address), "\(outcome.message)")
        }
    }

    @Test func `an invalid endpoint is refused`() async throws {
        for option in ["--bind", "--feed"] {
            let outcome = try await Tool.outcome(
                of: try Tool.start(["sequencer", "--memory", option, "nonsense"]))
            #expect(outcome.end == .exited(64), "\(outcome.title): \(outcome.message)")
            #expect(outcome.message.contains("nonsense"), "\(outcome.message)")
        }
    }

    @Test(arguments: [true, false])
    func `every command ends in time if nobody answers`(isListening: Bool) async throws {
        let port = try HeldPort(isListening: isListening)
        let address = port.address
        let commands = [
            ["status"], ["observe", "counter"], ["observe", "counter", "--follow"], ["log"],
            ["log", "--follow"], ["worker", "--name", "alpha"],
            ["dispatch", "counter/*", "increment"], ["dispatch", "counter/*", "-"],
        ]
        for command in commands {
            let child = try Tool.start(
                command + ["--connect", address, "--timeout", "300ms", "--json"])
            let outcome = try await Tool.outcome(of: child)
            #expect(outcome.end == .exited(69), "\(outcome.title): \(outcome.message)")
            let error = try object(try #require(outcome.errors.last))[key: "error"]
            #expect(error?[key: "code"] == "unreachable", "\(outcome.message)")
            #expect(error?[key: "message"]?.string?.contains(address) == true)
        }
        // Keeps the port occupied until here.
        _ = consume port
    }

    @Test func `an unknown state is answered with the states that a worker knows`() async throws {
        let outcome = try await Tool.outcome(
            of: try Tool.start(["worker", "--name", "alpha", "--store", "documnt"]))
        #expect(outcome.end == .exited(64))
        #expect(outcome.message.contains("counter, document"), "\(outcome.message)")
        #expect(outcome.message.contains("Did you mean 'document'?"), "\(outcome.message)")
    }

    @Test func `a missing file is named`() async throws {
        let path = "/nonexistent/actions.ndjson"
        let outcome = try await Tool.outcome(
            of: try Tool.start(["dispatch", "counter/*", "--file", path]))
        #expect(outcome.end == .exited(66), "\(outcome.message)")
        #expect(outcome.message.contains(path), "\(outcome.message)")
    }

    @Test func `a folder that can't be made is named`() async throws {
        let outcome = try await Tool.outcome(
            of: try Tool.start(
                ["sequencer", "--data", "/proc/conflux", "--bind", "tcp://127.0.0.1:0"]))
        #expect(outcome.end == .exited(73), "\(outcome.message)")
        #expect(outcome.message.contains("/proc/conflux"), "\(outcome.message)")
    }
}
