import ConfluxArguments
import ConfluxWorker
import Foundation
import Testing

@testable import ConfluxCLI

/// The output of a command, and its exit code.
struct Run {
    var exitCode: ExitCode
    var lines: [String]

    /// Runs the tool in this process.
    static func tool(
        _ words: [String], interruption: Interruption = Interruption()
    ) async throws -> Run {
        guard case .run(let invocation) = try Tool.program.parse(words) else {
            Issue.record("\(words) runs nothing")
            return Run(exitCode: .failed, lines: [])
        }
        let file = try TemporaryFile()
        // A test that takes too long is cancelled, and then ends like an interrupted command.
        let exitCode = try await withTaskCancellationHandler {
            try await Tool.run(
                invocation, interruption: interruption, output: file.descriptor)
        } onCancel: {
            interruption.fire(.terminated)
        }
        return Run(exitCode: exitCode, lines: file.lines)
    }

    /// The failure of one of the tool's commands, or nil if it succeeds.
    static func failure(
        of words: [String],
        _ command: (CommandEnvironment) async throws(CommandFailure) -> ExitCode
    ) async throws -> CommandFailure? {
        guard case .run(let invocation) = try Tool.program.parse(words) else { return nil }
        let environment = CommandEnvironment(
            invocation, isJSON: true, lifetime: .limited, interruption: Interruption())
        do throws(CommandFailure) {
            _ = try await command(environment)
            return nil
        } catch {
            return error
        }
    }
}

/// A file that is removed with this object.
final class TemporaryFile {
    let path: String
    let descriptor: Int32

    init(_ text: String = "") throws {
        var template = Array((NSTemporaryDirectory() + "conflux-cli.XXXXXX").utf8CString)
        descriptor = mkstemp(&template)
        try #require(descriptor >= 0)
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        let bytes = Array(text.utf8)
        try #require(write(descriptor, bytes, bytes.count) == bytes.count)
    }

    deinit {
        unlink(path)
        close(descriptor)
    }

    var lines: [String] {
        guard let data = FileManager.default.contents(atPath: path) else { return [] }
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}
