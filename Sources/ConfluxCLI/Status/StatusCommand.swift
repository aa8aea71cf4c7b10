import ConfluxArguments
import ConfluxNode
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
            environment.output.print(json(status, of: sequencers, at: address))
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

    static func json(
        _ status: SequencerStatus, of sequencers: [SequencerPlace] = [], at address: String
    ) -> JSONValue {
        let places = sequencers.map { place in
            JSONObject(["address": place.address, "last": place.last, "serving": place.isServing])
        }
        let fields: JSONFields = [
            "address": address, "checkpoint": status.checkpoint, "epoch": status.epoch,
            "floor": status.floor, "last": status.last, "log": status.log,
            "sequencers": places.isEmpty ? nil : places,
            "sessions": sessions(status), "stores": stores(status),
        ]
        return JSONObject(fields).json
    }

    static func sessions(_ status: SequencerStatus) -> [JSONObject] {
        status.sessions.map { json($0, last: status.last) }
    }

    static func stores(_ status: SequencerStatus) -> [JSONObject] {
        let names = status.names
        return status.stores.map { json($0, names: names) }
    }

    private static func json(_ session: SessionStatus, last: SequenceNumber) -> JSONObject {
        let lag = lag(of: session, last: last)
        return JSONObject([
            "applied": lag == nil ? nil : session.applied, "bridged": session.bridged,
            "dispatched": session.lastCounter, "hosted": session.hosted,
            "incarnation": session.incarnation, "key": session.owner, "lag": lag,
            "live": session.isLive, "name": session.name,
        ])
    }

    private static func json(_ store: StoreStatus, names: [Incarnation: Name]) -> JSONObject {
        let stopped = store.stopped.map { replica in
            JSONObject([
                "incarnation": replica.node, "name": names[replica.node],
                "sequence": replica.sequence,
            ])
        }
        return JSONObject([
            "divergence": store.divergence.map { JSONObject(DivergenceText.fields($0, names)) },
            "frozen": store.isFrozen, "hosts": store.hosts, "life": store.life,
            "schemaVersion": store.schemaVersion, "snapshot": store.snapshot,
            "stopped": stopped.isEmpty ? nil : stopped, "store": store.store,
        ])
    }

    /// How many entries a session's replicas have not applied yet; nil if it has no replicas, or has not reported
    /// yet.
    static func lag(of session: SessionStatus, last: SequenceNumber) -> UInt64? {
        guard !session.hosted.isEmpty || !session.bridged.isEmpty, session.applied != .zero
        else { return nil }
        return last.rawValue - min(session.applied.rawValue, last.rawValue)
    }
}
