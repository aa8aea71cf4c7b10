import Foundation
import Testing

/// A dispatch that gets most of its input at once, and the rest after the faults.
struct HeldStream {
    let name: String
    let child: Child
    let path: String
    let rest: [String]

    func finish() {
        child.feed(rest)
        child.endInput()
    }
}

/// Starts dispatches that the test then disturbs.
func startStreams(
    _ site: Site, _ address: String, lineCount: Int, seed: UInt64
) async throws -> [HeldStream] {
    var generator = ActionGenerator(seed: seed)
    var streams: [HeldStream] = []
    for name in ["one", "two"] {
        let lines = (0..<lineCount).map { _ in generator.next() }
        let path = try site.write(lines.joined(separator: "\n") + "\n", to: name)
        let child = try site.start(
            [
                "dispatch", "document/*", "-", "--json", "--connect", address,
                "--timeout", "30s",
            ], input: .pipe)
        child.feed(lines.dropLast(50))
        let rest = Array(lines.suffix(50))
        streams.append(HeldStream(name: name, child: child, path: path, rest: rest))
    }
    return streams
}

/// Waits until all streams have ended, and reads the outcome of each line.
func outcomes(of streams: [HeldStream]) async throws -> [StreamExpectation] {
    var expectations: [StreamExpectation] = []
    for stream in streams {
        let outcome = try await Tool.outcome(of: stream.child, within: .seconds(40))
        #expect(outcome.end == .exited(0), "\(outcome.title): \(outcome.message)")
        expectations.append(
            try StreamExpectation(
                stream.name, actions: stream.path, results: outcome.output))
    }
    return expectations
}
