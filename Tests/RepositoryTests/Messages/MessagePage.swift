import Conflux
import ConfluxNode
import ConfluxWorker

@testable import ConfluxCLI
@testable import ConfluxLog

/// docs/messages.md: every message of the sources, with what makes it.
enum MessagePage {
    static let path = "docs/messages.md"

    /// The text that the page must have.
    static func text(of tree: Tree) -> String {
        var lines = [introduction, "", "## Exit statuses", "", "| status | meaning |", "|---|---|"]
        lines += ExitCode.allCases.map { "| \($0.rawValue) | \($0.summary) |" }
        let modules = Dictionary(grouping: messages(of: tree)) {
            String($0.path.split(separator: "/")[1])
        }
        for (module, messages) in modules.sorted(by: { $0.key < $1.key }) {
            lines += [
                "", "## \(module)", "", "| message | made as | status | in |", "|---|---|---|---|",
            ]
            lines += messages.map(row)
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The messages of all products, in the order of their files. A message is listed once for each file.
    static func messages(of tree: Tree) -> [Message] {
        tree.swift(in: "Sources").flatMap { path, source -> [Message] in
            guard !path.hasPrefix("Sources/ConfluxArguments/Output/"),
                !path.hasSuffix("/ExitCode.swift"), !path.contains("/OpenAPI")
            else { return [] }
            var seen: Set<Message> = []
            return Message.all(in: source, at: path).filter { seen.insert($0).inserted }
        }
    }

    private static let introduction = """
        # Messages

        Every text that the tools and the libraries print about what happened, with the code that makes it. \
        The list is made from the sources: a test fails where it differs from them, and \
        `CONFLUX_REWRITE=1 swift test --filter MessageTests` writes it anew.

        - **message**: `{name}` stands for a value. What begins with a small letter and has no full stop is \
        a part of a longer message, or a line of a service's log.
        - **made as**: an error's type and its code, by which programs decide; otherwise the function or \
        property that returns or prints the text. `precondition` and `fatalError` end the program: they \
        report a mistake in the program that calls.
        - **status**: how `conflux` exits when this ends a command. Where there is none, the message ends \
        nothing, or its status depends on what caused it.

        Not here are the texts of `--help`, the description of the gateway's API, test failures' \
        differences, and [metrics](monitoring.md).
        """

    private static func row(_ message: Message) -> String {
        let status = status(of: message.maker).map { "\($0.rawValue)" } ?? ""
        let file = message.path.split(separator: "/").last.map { $0.dropLast(6) } ?? ""
        let text = ["|", "*", "<", "["].reduce(message.text) { $0.replacing($1, with: "\\" + $1) }
        return "| \(text.trimmed) | `\(message.maker)` | \(status) | \(file) |"
    }

    /// The exit code with which the program ends after this error.
    private static func status(of maker: String) -> ExitCode? {
        let parts = maker.split(separator: " ")
        guard parts.count == 2 else {
            return ["Mistake", "InvalidValue", "usageError"].contains(parts.last ?? "")
                ? .usage : nil
        }
        let code = String(parts[1].dropFirst())
        switch parts[0] {
        case "CommandFailure": return ExitCode.allCases.first { "\($0)" == code }
        case "Mistake", "InvalidValue": return .usage
        case "DispatchError":
            let code = DispatchError.Code(rawValue: code)
            return CommandFailure(DispatchError(code: code, message: "")).exitCode
        case "NodeError":
            return NodeError.Code(rawValue: code).map {
                CommandFailure(NodeError(code: $0, message: "")).exitCode
            }
        case "LogError":
            return LogError.Code(rawValue: code).map { LogError($0, "").failure.exitCode }
        default: return nil
        }
    }
}

extension String {
    fileprivate var trimmed: Substring {
        self[..<(lastIndex { $0 != " " }.map(index(after:)) ?? endIndex)]
    }
}
