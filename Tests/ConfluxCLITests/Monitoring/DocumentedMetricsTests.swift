import ConfluxNode
@testable import ConfluxSequencer
import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxCLI
@testable import ConfluxMonitoring
@testable import ConfluxProtocol
@testable import ConfluxWorker

/// docs/monitoring.md has every metric, and no other one.
struct DocumentedMetricsTests {
    /// A metric, as a row of the document or as the served text has it.
    private struct Metric: Hashable, CustomStringConvertible {
        var name: String
        var type: String
        var labels: Set<String>

        var description: String { "\(name) \(type) \(labels.sorted())" }
    }

    /// The rows of the tables between two headings.
    private static func documented(under heading: String) throws -> Set<Metric> {
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../docs/monitoring.md")
        let text = try String(contentsOf: url, encoding: .utf8)
        let section = try #require(
            text.components(separatedBy: "### \(heading)\n").dropFirst().first
        )
        .components(separatedBy: "\n#")[0]
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("| `conflux_") }
        return Set(
            rows.map { row in
                let cells = row.split(separator: "|", omittingEmptySubsequences: false)
                    .map { $0.trimmingCharacters(in: .whitespaces) }
                let labels = cells[4].split(separator: ",").map {
                    $0.trimmingCharacters(in: CharacterSet(charactersIn: " `"))
                }
                return Metric(
                    name: cells[1].trimmingCharacters(in: CharacterSet(charactersIn: "`")),
                    type: cells[2], labels: Set(labels))
            })
    }

    /// The metrics of a text in the format of Prometheus.
    private static func served(_ families: [MetricFamily]) -> Set<Metric> {
        var metrics: [String: Metric] = [:]
        var last = ""
        for line in MetricFamily.text(families).split(separator: "\n") {
            let words = line.split(separator: " ")
            if line.hasPrefix("# TYPE") {
                last = String(words[2])
                metrics[last] = Metric(name: last, type: String(words[3]), labels: [])
            } else if !line.hasPrefix("#"), let open = line.firstIndex(of: "{") {
                let labels = line[line.index(after: open)...].split(separator: ",")
                    .map { String($0.split(separator: "=")[0]) }
                metrics[last]?.labels.formUnion(labels.filter { $0 != "le" })
            }
        }
        return Set(metrics.values)
    }

    @Test func `every metric of any program is documented as it is`() throws {
        let families = ProcessFamilies(program: "x", version: "1")
            .families(isReady: true, bounds: [Bound("x", 1, of: 2)])
        #expect(Self.served(families) == (try Self.documented(under: "Every program")))
    }

    @Test func `every metric of a sequencer is documented as it is`() throws {
        var metrics = SequencerMetrics()
        metrics.lags = [SequencerMetrics.Lag(name: Name("alpha"), entries: 1, age: .seconds(1))]
        metrics.lastSnapshotAt = Timestamp(1)
        metrics.lastCheckpointAt = Timestamp(1)
        let counter = try #require(StoreName("counter/shared"))
        metrics.logHold = LogHold(
            subject: .store(counter), nodes: [], reason: "", floor: SequenceNumber(1),
            retainedBytes: 1,
            space: LogSpace(usedBytes: 1, of: 1))
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data().write(to: folder.appending(path: "backed-up"))
        let families = SequencerFamilies(metrics: metrics, folder: folder.path).all
        #expect(Self.served(families) == (try Self.documented(under: "The sequencer")))
    }

    @Test func `every metric of a worker is documented as it is`() throws {
        #expect(
            Self.served(NodeMetrics().families) == (try Self.documented(under: "A worker")))
    }

    @Test func `the document lists exactly the values of labels that exist`() throws {
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../docs/monitoring.md")
        let text = try String(contentsOf: url, encoding: .utf8)
        let values =
            NodeMetrics.OutcomeKind.allCases.map(\.rawValue)
            + NodeMetrics.ResyncReason.allCases.map(\.rawValue)
            + Expected.Reason.allCases.map { "\($0)" } + RejectionCode.allCases.map { "\($0)" }
        for value in values { #expect(text.contains("`\(value)`"), "\(value)") }
    }
}
