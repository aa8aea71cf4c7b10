import Foundation
import Testing

/// The versions that programs print.
struct VersionTests {
    private func version(_ program: String, _ arguments: String...) async throws -> [String] {
        let outcome = try await Tool.outcome(
            of: try Tool.start(arguments + ["--version"], program: program))
        #expect(outcome.end == .exited(0), "\(outcome.message)")
        return outcome.output
    }

    @Test func `every command prints the version`() async throws {
        let expected = ["conflux \(try Deployment.version())"]
        #expect(try await version(Tool.path) == expected)
        for command in [
            "context", "sequencer", "worker", "dispatch", "observe", "drop", "freeze", "thaw",
            "log", "status",
            "backup", "restore", "keygen", "help", "completions",
        ] {
            #expect(try await version(Tool.path, command) == expected, "\(command)")
        }
    }

    @Test func `a worker of your own prints its version, and that of Conflux`() async throws {
        let conflux = "(Conflux \(try Deployment.version()))"
        #expect(
            try await version(Tool.built("VaryingWorker")) == ["varying-worker 7.8.9 \(conflux)"])
        #expect(try await version(Tool.built("TrappingWorker")) == ["trapping-worker \(conflux)"])
    }
}
