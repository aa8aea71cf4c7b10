import ConfluxMonitoring
import ConfluxProtocol
import Foundation

/// The metrics that every program has.
package struct ProcessFamilies: Sendable {
    private let program: String
    private let version: String
    private let startedAt = Date()

    /// Records the program and the time of its start.
    ///
    /// - Parameters:
    ///   - program: The program's name.
    ///   - version: Its version, as `--version` shows it.
    package init(program: String, version: String) {
        self.program = program
        self.version = version
    }

    /// The metrics at this moment.
    ///
    /// - Parameters:
    ///   - isReady: Whether `/readyz` answers 200.
    ///   - bounds: The levels of queues, tables and buffers.
    /// - Returns: The metrics.
    package func families(isReady: Bool, bounds: [Bound]) -> [MetricFamily] {
        let bounds = bounds.sorted { $0.name < $1.name }
        return [
            .gauge(
                "conflux_build_info", "The program and its version.",
                [([("program", program), ("version", version)], 1)]),
            .gauge("conflux_ready", "Whether /readyz answers 200.", isReady),
            .gauge(
                "conflux_process_start_time_seconds", "When the program started, since 1970 UTC.",
                startedAt.timeIntervalSince1970),
            .gauge(
                "conflux_process_resident_memory_bytes", "Resident memory of the process.",
                ProcessFigures.residentBytes.map { Double($0) }),
            .gauge(
                "conflux_bound_level", "Level of a queue, table or buffer.",
                bounds.map { ([("bound", $0.name)], Double($0.level)) }),
            .gauge(
                "conflux_bound_limit", "Limit of a queue, table or buffer.",
                bounds.map { ([("bound", $0.name)], Double($0.most)) }),
        ]
    }
}
