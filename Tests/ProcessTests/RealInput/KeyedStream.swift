import Foundation
import Spawning

/// A dispatch with a session key that is killed and run again. Its file of generated actions grows.
actor KeyedStream {
    private let site: Site
    private let path: String
    private let lines: [String]
    private var progress: ResumeProgress
    private var child: Child?
    /// How many runs were killed before they ended.
    private(set) var kills = 0

    init(_ lineCount: Int, on site: Site, by generator: inout ActionGenerator) throws {
        self.site = site
        path = site.path("keyed.ndjson")
        let lines = (0..<lineCount).map { _ in generator.next() }
        self.lines = lines
        progress = ResumeProgress(lines)
    }

    /// Adds a part of the lines to the file, starts a run, and waits for the results of some new lines.
    func begin(part: Int, of parts: Int, at address: String, within limit: Duration) async throws {
        let count = lines.count * (part + 1) / parts
        let child = try start(count, at: address)
        let place = progress.ends.count + (count - progress.ends.count) / 4
        guard try await child.output.line(place, within: limit) != nil else {
            throw Failure(child.report)
        }
    }

    func kill() async throws {
        guard let child else { return }
        child.signal(SIGKILL)
        switch try await child.end() {
        case .killed(SIGKILL): kills += 1
        case .exited(0): break
        default: throw Failure(child.report)
        }
        try progress.take(try await child.output.all(), isWhole: false)
    }

    /// Runs all remaining lines to the end.
    ///
    /// - Returns: The receipts of all runs.
    func finish(
        at address: String, within limit: Duration
    ) async throws -> sending StreamExpectation {
        let outcome = try await Tool.outcome(
            of: try start(lines.count, at: address), within: limit)
        guard outcome.end == .exited(0), outcome.errors.isEmpty else {
            throw Failure("\(outcome.title): \(outcome.end): \(outcome.message)")
        }
        try progress.take(outcome.output, isWhole: true)
        let receipts = lines.indices.compactMap { progress.ends[$0 + 1] ?? nil }
        return try StreamExpectation("keyed", actions: path, receipts: receipts)
    }

    private func start(_ count: Int, at address: String) throws -> Child {
        let text = lines[..<count].map { $0 + "\n" }.joined()
        try Data(text.utf8).write(to: URL(filePath: path))
        let child = try site.start([
            "dispatch", "document/*", "--file", path, "--resume", "keyed", "--json", "--connect",
            address, "--timeout", "60s",
        ])
        self.child = child
        return child
    }
}
