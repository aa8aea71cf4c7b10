import ConfluxMonitoring
import ConfluxSequencer

/// The metrics of a sequencer, for Prometheus.
struct SequencerFamilies {
    let metrics: SequencerMetrics
    /// The folder of the log; nil if the log is in memory or on etcd.
    let folder: String?

    var all: [MetricFamily] { term + log + admission + nodes + shelf }

    private var term: [MetricFamily] {
        [
            .gauge(
                "conflux_sequencer_serving", "Whether a term serves nodes.", metrics.isServing),
            .gauge(
                "conflux_sequencer_epoch", "The epoch of the present term.",
                metrics.epoch.rawValue),
            .counter(
                "conflux_sequencer_terms_total", "Terms that began to serve.", metrics.terms),
            .counter(
                "conflux_sequencer_log_failures_total",
                "Terms that ended because the log failed.", metrics.logFailures),
        ]
    }

    private var log: [MetricFamily] {
        [
            .gauge(
                "conflux_sequencer_last_entry", "Number of the last committed entry.",
                metrics.last.rawValue),
            .gauge(
                "conflux_sequencer_floor_entry", "Lowest number that the log still holds.",
                metrics.floor.rawValue),
            .counter(
                "conflux_sequencer_entries_total", "Entries committed.", metrics.tally.entries),
            .counter("conflux_sequencer_commits_total", "Commits written.", metrics.tally.commits),
            .counter(
                "conflux_sequencer_commit_bytes_total", "Bytes of commits written.",
                metrics.tally.commitBytes),
            .histogram(
                "conflux_sequencer_commit_duration_seconds",
                "Time from handing commits to the log until they are published.",
                metrics.commitLatency),
            .histogram(
                "conflux_sequencer_log_append_duration_seconds",
                "Time to write commits to the log and to sync them.", metrics.appendLatency),
            .gauge(
                "conflux_sequencer_log_nearly_full",
                "Whether the log has reached its bound and admits nothing.", metrics.isLogNearlyFull
            ),
            .gauge(
                "conflux_sequencer_log_held",
                "Who needs the lowest entry of a log that has reached its bound: 1 for a store, a checkpoint or nothing.",
                metrics.logHold.map { [(labels: Self.labels($0), value: 1)] } ?? []),
            .gauge(
                "conflux_sequencer_clock_behind",
                "Whether the wall clock is behind the log's timestamps.", metrics.isClockBehind),
            .counter(
                "conflux_sequencer_clock_jumps_total", "Jumps of the wall clock forward.",
                metrics.clockJumps),
            .gauge(
                "conflux_sequencer_log_retained_bytes", "Bytes of commits that the log holds.",
                metrics.retainedBytes),
            .gauge(
                "conflux_sequencer_log_file_bytes", "Bytes of all files in the log's folder.",
                folder.flatMap { ProcessFigures.fileBytes(inFolder: $0) }.map { Double($0) }),
            .gauge(
                "conflux_sequencer_log_free_bytes",
                "Free space of the file system of the log's folder.",
                folder.flatMap { ProcessFigures.freeBytes(ofFolder: $0) }.map { Double($0) }),
            .gauge(
                "conflux_sequencer_last_backup_time_seconds",
                "When a backup of the log was last made.", folder.flatMap(BackupMark.seconds)),
        ]
    }

    /// Who needs the lowest entry of the log: its kind, and the store if it is one.
    static func labels(_ hold: LogHold) -> [(name: String, value: String)] {
        switch hold.subject {
        case .store(let name): [("by", "store"), ("store", name.description)]
        case .checkpoint: [("by", "checkpoint"), ("store", "")]
        case .nothing: [("by", "nothing"), ("store", "")]
        }
    }

    private var admission: [MetricFamily] {
        let tally = metrics.tally
        return [
            .counter(
                "conflux_sequencer_rejections_total", "Actions rejected.", label: "reason",
                RejectionCode.allCases.map { ("\($0)", tally.rejections[$0] ?? 0) }),
            .counter(
                "conflux_sequencer_postponed_batches_total",
                "Batches discarded, which their nodes submit again.", label: "reason",
                Expected.Reason.allCases.map { ("\($0)", tally.postponements[$0] ?? 0) }),
            .counter(
                "conflux_sequencer_unreadable_frames_total",
                "Unreadable frames from nodes.", metrics.unreadableFrames),
            .gauge(
                "conflux_sequencer_slowed",
                "Whether admission is slowed because most replicas lag.", metrics.isSlowed),
        ]
    }

    private var nodes: [MetricFamily] {
        let lags = metrics.lags.compactMap { lag in
            lag.name.map { (labels: [(name: "node", value: $0.text)], lag: lag) }
        }
        return [
            .gauge(
                "conflux_sequencer_sessions", "Sessions remembered.",
                [
                    ([("presence", "live")], Double(metrics.liveSessions)),
                    ([("presence", "away")], Double(metrics.awaySessions)),
                ]),
            .gauge(
                "conflux_sequencer_observers", "Connections that only read.", metrics.observers),
            .gauge("conflux_sequencer_stores", "Stores that exist.", metrics.stores),
            .gauge(
                "conflux_sequencer_timers", "Timers that have not fired for the last time.",
                metrics.timers),
            .gauge(
                "conflux_sequencer_replicas", "Connected nodes that host stores.",
                metrics.replicas),
            .gauge(
                "conflux_sequencer_stopped_replicas",
                "Replicas in live nodes that have stopped.",
                metrics.stoppedReplicas),
            .gauge(
                "conflux_sequencer_lag_max_entries", "Lag of the slowest node.",
                metrics.lagMax.entries),
            .gauge(
                "conflux_sequencer_lag_max_seconds",
                "Age of the oldest entry that the slowest node has not applied.",
                metrics.lagMax.age.inSeconds),
            .gauge(
                "conflux_sequencer_node_lag_entries", "Lag of a named node.",
                lags.map { ($0.labels, Double($0.lag.entries)) }),
            .gauge(
                "conflux_sequencer_node_lag_seconds",
                "Age of the oldest entry that a named node has not applied.",
                lags.map { ($0.labels, $0.lag.age.inSeconds) }),
            .counter(
                "conflux_sequencer_history_losses_total",
                "Nodes whose history did not match the log.", metrics.historyLosses),
            .gauge(
                "conflux_sequencer_diverged_stores", "Stores whose replicas differ.",
                metrics.divergedStores),
            .counter(
                "conflux_sequencer_divergences_total",
                "How often replicas of a store began to differ.", metrics.divergences),
        ]
    }

    private var shelf: [MetricFamily] {
        [
            .counter(
                "conflux_sequencer_snapshots_total", "Snapshots.", label: "result",
                [("taken", metrics.snapshotsTaken), ("failed", metrics.snapshotsFailed)]),
            .gauge(
                "conflux_sequencer_last_snapshot_time_seconds",
                "When this process took the last snapshot, since 1970 UTC.",
                metrics.lastSnapshotAt?.inSeconds),
            .counter(
                "conflux_sequencer_checkpoints_total", "Checkpoints.", label: "result",
                [("saved", metrics.checkpointsSaved), ("failed", metrics.checkpointsFailed)]),
            .gauge(
                "conflux_sequencer_last_checkpoint_time_seconds",
                "When this process saved the last checkpoint, since 1970 UTC.",
                metrics.lastCheckpointAt?.inSeconds),
        ]
    }
}
