import Conflux
import Foundation
import Spawning
import Synchronization

/// A dispatch that is fed at a steady rate for as long as a test wishes, and never far ahead of its
/// outcomes. So it is always busy, and a fault always hits actions in progress.
final class Load: Sendable {
    /// How many lines may have no outcome yet.
    static let aheadMax = 40
    private static let chunk = 10
    /// The time between two chunks. It is not shorter, since each restarted worker applies all actions again.
    private static let interval = Duration.milliseconds(30)
    /// Lines that are not actions of a document, for `includesBad`.
    private static let bad = ["{", "increment", #"{"set":{"at":"x","value":1}}"#, "\u{FEFF}{}"]

    let name: String
    let child: Child
    /// The file of all lines that the dispatch was given.
    let path: String
    private let seed: UInt64
    private let includesBad: Bool
    private let isOver = Atomic(false)

    /// Starts the dispatch. Its first line is an action that occurs in no other load.
    init(
        _ name: String, on site: Site, at address: String, seed: UInt64, includesBad: Bool = false
    ) throws {
        self.name = name
        self.seed = seed
        self.includesBad = includesBad
        path = site.path("load-\(name).ndjson")
        child = try site.start(
            ["dispatch", "document/*", "-", "--json", "--connect", address, "--timeout", "60s"],
            input: .pipe)
    }

    /// Makes `run` end the input soon.
    func finish() { isOver.store(true, ordering: .sequentiallyConsistent) }

    /// Feeds the dispatch until ``finish()`` is called, or the process has ended.
    func run() async throws {
        guard FileManager.default.createFile(atPath: path, contents: nil),
            let file = FileHandle(forWritingAtPath: path)
        else { throw Failure("can't write \(path)") }
        defer { child.endInput() }
        var generator = ActionGenerator(seed: seed)
        var random = SplitMix64(seed: seed &+ 1)
        var count = 0
        while !isOver.load(ordering: .sequentiallyConsistent) {
            let lines = (0..<Self.chunk).map { index in
                if count == 0, index == 0 { return Self.mark(name) }
                if includesBad, Int.random(in: 0..<40, using: &random) == 0 {
                    return Self.bad.randomElement(using: &random)!
                }
                return generator.next()
            }
            // The file gets the lines before the process does, so that it has everything that can reach the log.
            try file.write(contentsOf: Data((lines.joined(separator: "\n") + "\n").utf8))
            child.feed(lines)
            count += lines.count
            let tick = OneTime<Void>()
            tick.after(Self.interval, give: ())
            await tick.value()
            guard count > Self.aheadMax else { continue }
            // There is none if the process has ended. The audit decides whether it was right to end.
            guard try await child.output.line(count - Self.aheadMax) != nil else { break }
        }
        try file.close()
    }

    static func mark(_ name: String) -> String {
        #"{"set":{"at":"/loads/\#(name)","value":"begun"}}"#
    }

    /// Waits until some more outcomes have arrived.
    func progress(by count: Int) async throws {
        let next = child.output.count + count
        guard try await child.output.line(next - 1) != nil else {
            throw Failure("\(child.title) ended under load:\n\(child.report)")
        }
    }
}
