import ConfluxVocabulary
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
        let known = ["sequencer", "worker", "gateway"].reduce(into: Set()) {
            $0.formUnion(events($1, in: text))
        }
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
                invocation, isJSON: isJSON, lifetime: .service, interruption: Interruption(),
                output: file.descriptor)
            for event in ["disconnected", "reconnected", "storeStopped"] {
                environment.announce(event, text: event)
            }
            #expect(file.lines.count == printed.count)
            for (line, event) in zip(file.lines, printed) {
                let level = EventLevel(of: event).rawValue
                let time = /20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ/
                let match = try #require(line.firstMatch(of: time), "\(line)")
                let rest = line.replacing(match.output, with: "TIME")
                let padded = level.padding(toLength: 7, withPad: " ", startingAt: 0)
                #expect(
                    rest
                        == (isJSON
                            ? #"{"event":"\#(event)","level":"\#(level)","time":"TIME"}"#
                            : "TIME \(padded) \(event)"))
            }
        }
    }

    @Test func `the journal gets the level of each line, and no time`() throws {
        #expect(JournalStream.marked("a\n\nb", .warning) == "<4>a\n<4>\n<4>b")
        #expect(JournalStream.marked("a", .error) == "<3>a")
        #expect(JournalStream.marked("", .info) == "<6>")
    }

    @Test func `only the descriptor that the variable names is the journal`() throws {
        let file = try TemporaryFile()
        let other = try TemporaryFile()
        var status = stat()
        try #require(fstat(file.descriptor, &status) == 0)
        let name = "\(status.st_dev):\(status.st_ino)"
        #expect(JournalStream.reads(file.descriptor, variables: ["JOURNAL_STREAM": name]))
        #expect(!JournalStream.reads(other.descriptor, variables: ["JOURNAL_STREAM": name]))
        #expect(!JournalStream.reads(file.descriptor, variables: [:]))
        for wrong in ["", "0:0", "\(name) ", "x:\(status.st_ino)"] {
            #expect(!JournalStream.reads(file.descriptor, variables: ["JOURNAL_STREAM": wrong]))
        }
        #expect(!JournalStream.reads(-1, variables: ["JOURNAL_STREAM": name]))
    }

    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (1_700_000_000_999_999_999, "2023-11-14T22:13:20.999Z"),
        (951_782_400_000_000_000, "2000-02-29T00:00:00.000Z"),
    ])
    func `a time is ISO 8601 in UTC`(nanoseconds: Int64, text: String) {
        #expect(Timestamp(nanoseconds).iso8601 == text)
    }
}
