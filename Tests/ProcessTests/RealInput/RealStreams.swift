import Foundation
import Spawning
import Testing

/// Two concurrent dispatches of generated actions, one from a file and one from standard input.
struct RealStreams {
    private static let lineCountName = "CONFLUX_REAL_INPUT_LINES"

    private let ofFile: Child
    private let ofInput: Child
    private let paths: [String]
    /// The lines for standard input.
    private let parts: [[String]]
    private let limit: Duration

    /// The number of actions that a test dispatches.
    static func lineCount() throws -> Int {
        let given = ProcessInfo.processInfo.environment[lineCountName]
        return try #require(Int(given ?? "2000"), "\(lineCountName) is no number")
    }

    /// A limit far longer than a slow machine needs for this many actions.
    static func limit(_ lineCount: Int) -> Duration { .seconds(60 + lineCount / 100) }

    /// Starts both dispatches. Standard input is empty until its first part is written.
    init(
        _ lineCount: Int, parts count: Int = 1, on site: Site, at address: String,
        by generator: inout ActionGenerator, _ options: String...
    ) throws {
        limit = Self.limit(lineCount)
        paths = [site.path("one.ndjson"), site.path("two.ndjson")]
        try generator.write(lineCount / 2, to: paths[0])
        try generator.write(lineCount - lineCount / 2, to: paths[1])
        var lines: [String] = []
        try forEachLine(of: paths[1]) { lines.append($0) }
        parts = (0..<count).map { part in
            Array(lines[(lines.count * part / count)..<(lines.count * (part + 1) / count)])
        }
        let common = ["dispatch", "document/*", "--json", "--connect", address] + options
        ofFile = try site.start(common + ["--file", paths[0]])
        ofInput = try site.start(common + ["-"], input: .pipe)
    }

    /// Writes the next part to standard input, and waits for the results of a quarter of it.
    ///
    /// Afterwards both dispatches have results, and so have connected. A dispatch that had not connected
    /// would rightly end if the sequencer were killed now.
    func begin(part: Int) async throws {
        ofInput.feed(parts[part])
        if part == parts.count - 1 { ofInput.endInput() }
        let before = parts[..<part].map(\.count).reduce(0, +)
        let place = before + parts[part].count / 4
        for (child, line) in [(ofInput, place), (ofFile, 0)] {
            guard try await child.output.line(line, within: limit) != nil else {
                throw Failure(child.report)
            }
        }
    }

    /// Waits until both dispatches have succeeded.
    func expectations() async throws -> [StreamExpectation] {
        var expectations: [StreamExpectation] = []
        for (child, (name, path)) in zip([ofFile, ofInput], zip(["one", "two"], paths)) {
            let outcome = try await Tool.outcome(of: child, within: limit)
            #expect(outcome.end == .exited(0), "\(outcome.title): \(outcome.message)")
            #expect(outcome.errors.isEmpty, "\(outcome.title): \(outcome.message)")
            expectations.append(
                try StreamExpectation(name, actions: path, results: outcome.output))
        }
        return expectations
    }
}
