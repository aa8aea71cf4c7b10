import Conflux
import Foundation
import Spawning

/// The program under test, and one complete run of it.
enum Tool {
    /// The program `conflux`: the one that `CONFLUX_EXECUTABLE` names, or else the one built with the tests.
    static let path =
        ProcessInfo.processInfo.environment["CONFLUX_EXECUTABLE"] ?? built("conflux")

    /// A program that was built with the tests.
    static func built(_ name: String) -> String {
        // On Linux, the tests are a program in the same folder. On macOS, they are a bundle that another program loads.
        #if canImport(Darwin)
            let tests = Bundle(for: Anchor.self).bundleURL
        #else
            let tests = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        #endif
        return tests.deletingLastPathComponent().appendingPathComponent(name).path
    }

    private final class Anchor {}

    /// The environment of the tool. It has no settings of the user who runs the tests. Backtraces are off, since
    /// some processes crash on purpose.
    static let environment = [
        "TERM": "xterm",
        "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "SWIFT_BACKTRACE": "enable=no",
    ]

    /// The result of a run.
    struct Outcome: Sendable {
        let title: String
        let end: Child.End
        let output: [String]
        let errors: [String]

        /// All lines of standard error.
        var message: String { errors.joined(separator: "\n") }
    }

    static func start(
        _ arguments: [String], program: String = path, variables: [String: String] = [:],
        input: Child.Input = .nothing, output: Child.Output = .lines
    ) throws -> Child {
        try Child(
            program, arguments, environment: environment.merging(variables) { $1 }, input: input,
            output: output)
    }

    /// Waits until a process has ended and all of its output was read.
    static func outcome(
        of child: Child, within limit: Duration = .seconds(60)
    ) async throws -> Outcome {
        let end = try await child.end(within: limit)
        return Outcome(
            title: child.title, end: end, output: try await child.output.all(),
            errors: try await child.errors.all())
    }
}

extension JSONValue {
    /// A member of an object.
    subscript(key key: String) -> JSONValue? { object?[key] }

    var number: UInt64? { integer?.converted(to: UInt64.self) }
}

/// Reads a line that must be a JSON object with sorted keys and without blanks, as every command
/// prints it.
func object(_ line: String) throws -> JSONValue {
    let value: JSONValue
    do {
        value = try JSONValue(json: line)
        guard value.object != nil else { throw Failure("not an object") }
    } catch {
        throw Failure("\(error): \(line.prefix(400))")
    }
    return value
}
