import ConfluxArguments
import ConfluxProtocol
import ConfluxWorker
import Foundation

/// `conflux status`: shows the sequencer's view of itself, of the nodes and of the stores.
enum StatusCommand {
    static let watch = Flag(
        "--watch", summary: "Show it again each second, until SIGINT.")
    private static let watchInterval = Duration.seconds(1)

    static let description = Command(
        "status", summary: "Show the sequencer, its sessions and the stores.",
        discussion: """
            For a log on etcd, it shows which sequencer serves, which ones stand by, and up to \
            which entry each has the log.

            A session's lag is the number of entries that its replicas have not applied yet. A \
            session that hosts nothing, or has not reported yet, has no lag. The text leaves out \
            nodes without a name that have left; --json shows them. A store's snapshot is the \
            number at which whoever opens it begins to read the log.

            For a store whose replicas differ, the text shows between which entries it happened, \
            at which place of the state, and in which nodes. It does so until all replicas have \
            one state again, or the sequencer restarts. For a stopped replica it shows the entry \
            before which it stopped: install a newer program there, or use `conflux log skip`.
            """,
        parameters: [watch] + Connection.parameters,
        examples: [
            .init("Show who is there", "conflux status"),
            .init("Keep it in view", "conflux status --watch"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let isWatching = environment.arguments[watch]
        try await Connection.use(environment) { connection async throws(CommandFailure) in
            var place = isWatching ? Redrawing(environment.output) : nil
            while true {
                let status = try await connection.status()
                show(status, of: try await connection.sequencers(), environment, &place)
                guard isWatching, !Task.isCancelled else { return }
                await Pause.wait(for: watchInterval)
            }
        }
        return .success
    }

    /// Prints a status, in the place of the former one if there is one.
    private static func show(
        _ status: SequencerStatus, of sequencers: [SequencerPlace],
        _ environment: CommandEnvironment, _ place: inout Redrawing?
    ) {
        let address = environment.arguments[WorkerOptions.connect]
        guard !environment.isJSON else {
            environment.output.print(StatusFields.json(status, of: sequencers, at: address))
            return
        }
        let look = environment.output.appearance
        let lines = StatusText.lines(status, of: sequencers, at: address, look)
        guard place == nil else {
            place?.show(lines)
            return
        }
        for line in lines { environment.output.add(line) }
        environment.output.flush()
    }
}
