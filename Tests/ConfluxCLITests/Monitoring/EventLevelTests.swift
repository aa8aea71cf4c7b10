import Foundation
import Testing

@testable import ConfluxCLI
@testable import ConfluxWorker

/// The levels of events, as docs/command-line.md lists them.
struct EventLevelTests {
    /// The names in backquotes in the last cell of the row with this first cell.
    private func events(_ firstCell: String, in text: String) -> Set<String> {
        let row = text.split(separator: "\n").first { $0.hasPrefix("| \(firstCell) |") } ?? ""
        let cell = row.split(separator: "|").dropFirst().reversed().first { $0.contains("`") } ?? ""
        return Set(cell.split(separator: "`").map(String.init).filter { !$0.contains(" ") })
    }

    @Test func `the document lists exactly each level's events`() throws {
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../docs/command-line.md")
        let text = try String(contentsOf: url, encoding: .utf8)
        let known = events("sequencer", in: text).union(events("worker", in: text))
        #expect(known.count > 30)
        #expect(EventLevel.named.subtracting(known) == [])
        for level in [EventLevel.warning, .error] {
            let named = EventLevel.named.filter { EventLevel(of: $0) == level }
            #expect(events("`\(level.rawValue)`", in: text) == named)
        }
        #expect(EventLevel(of: "ready") == .info)
    }

    @Test(arguments: [
        (nil, ["disconnected", "reconnected", "storeStopped"]),
        ("info", ["disconnected", "reconnected", "storeStopped"]),
        ("warning", ["disconnected", "storeStopped"]),
        ("error", ["storeStopped"]),
    ])
    func `events below the requested level are not printed`(
        level: String?, printed: [String]
    ) throws {
        let options = level.map { ["--log-level", $0] } ?? []
        guard case .run(let invocation) = try Tool.program.parse(["worker"] + options) else {
            return
        }
        for isJSON in [false, true] {
            let file = try TemporaryFile()
            let environment = CommandEnvironment(
                invocation, isJSON: isJSON, isService: true, interruption: Interruption(),
                output: file.descriptor)
            for event in ["disconnected", "reconnected", "storeStopped"] {
                environment.announce(event, text: event)
            }
            let lines = printed.map { event in
                let level = EventLevel(of: event).rawValue
                return isJSON ? #"{"event":"\#(event)","level":"\#(level)"}"# : event
            }
            #expect(file.lines == lines)
        }
    }
}
