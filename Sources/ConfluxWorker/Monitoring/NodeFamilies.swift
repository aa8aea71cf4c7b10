import ConfluxMonitoring
import ConfluxNode

extension NodeMetrics {
    /// The metrics of a node, in the form of Prometheus.
    package var families: [MetricFamily] {
        [
            .gauge(
                "conflux_node_connected",
                "Whether the node has a session and hears from the sequencer.", isConnected),
            .gauge(
                "conflux_node_epoch", "The epoch of the term that the node follows.",
                epoch.rawValue),
            .gauge("conflux_node_stores", "Stores hosted.", stores.count),
            .gauge(
                "conflux_node_catching_up_stores",
                "Stores and bridged states that are opening or catching up.", catchingUp),
            .gauge(
                "conflux_node_stopped_stores", "Stores that have stopped.", stopped),
            .gauge(
                "conflux_node_last_entry", "Highest committed number that the node knows of.",
                last.rawValue),
            .gauge(
                "conflux_node_applied_entry",
                "Number up to which every store here has applied entries.",
                applied.rawValue),
            .gauge(
                "conflux_node_lag_entries", "Entries that the stores here lag behind the log.",
                lagEntries),
            .counter("conflux_node_actions_total", "Actions submitted.", actions),
            .gauge(
                "conflux_node_unsettled_actions", "Submitted actions that have no outcome yet.",
                unsettled),
            .counter(
                "conflux_node_outcomes_total", "Actions whose outcome was reported.",
                label: "outcome",
                OutcomeKind.allCases.map { ($0.rawValue, outcomes[$0] ?? 0) }),
            .histogram(
                "conflux_node_receipt_duration_seconds",
                "Time from dispatch until the outcome is reported.",
                receiptLatency),
            .counter(
                "conflux_node_disconnections_total",
                "How often the node lost contact with the sequencer.", disconnections),
            .counter(
                "conflux_node_refused_connections_total", "Connections refused.",
                refusedConnections),
            .counter(
                "conflux_node_resyncs_total", "How often the node had to resynchronise.",
                label: "reason", ResyncReason.allCases.map { ($0.rawValue, resyncs[$0] ?? 0) }),
            .counter(
                "conflux_node_divergences_total",
                "How often replicas of a store hosted here diverged.", divergences),
        ]
    }
}
