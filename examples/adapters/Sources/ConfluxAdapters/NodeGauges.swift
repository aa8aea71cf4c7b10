// Not compiled with the package itself, which Conflux does not depend on: see README.md.

import ConfluxNode
import Metrics

/// Records a node's metrics, again and again until its task is cancelled.
///
/// The metrics have the names of a worker's metrics for Prometheus. The backend adds the process and its labels.
///
/// - Parameters:
///   - node: The node.
///   - interval: The time between two records. The node's numbers are up to two seconds old.
/// - Throws: `CancellationError`.
public func recordMetrics(of node: Node, every interval: Duration = .seconds(10)) async throws {
    var former = node.metrics()
    while true {
        let metrics = node.metrics()
        gauge("connected", metrics.isConnected ? 1 : 0)
        gauge("stores", metrics.stores.count)
        gauge("catching_up_stores", metrics.catchingUp)
        gauge("stopped_stores", metrics.stopped)
        gauge("last_entry", metrics.last.rawValue)
        gauge("applied_entry", metrics.applied.rawValue)
        gauge("lag_entries", metrics.lagEntries)
        gauge("unsettled_actions", metrics.unsettled)
        count("actions_total", metrics.actions, since: former.actions)
        count("disconnections_total", metrics.disconnections, since: former.disconnections)
        count(
            "refused_connections_total", metrics.refusedConnections,
            since: former.refusedConnections)
        count("divergences_total", metrics.divergences, since: former.divergences)
        for (outcome, number) in metrics.outcomes {
            count(
                "outcomes_total", number, since: former.outcomes[outcome] ?? 0,
                [("outcome", outcome.rawValue)])
        }
        for (reason, number) in metrics.resyncs {
            count(
                "resyncs_total", number, since: former.resyncs[reason] ?? 0,
                [("reason", reason.rawValue)])
        }
        former = metrics
        try await Task.sleep(for: interval)
    }
}

private func gauge(_ name: String, _ value: some BinaryInteger) {
    Gauge(label: "conflux_node_\(name)").record(Int64(clamping: value))
}

/// A counter takes what was added. The node has the sum.
private func count(
    _ name: String, _ value: UInt64, since former: UInt64, _ dimensions: [(String, String)] = []
) {
    guard value > former else { return }
    Counter(label: "conflux_node_\(name)", dimensions: dimensions)
        .increment(by: Int64(clamping: value - former))
}
