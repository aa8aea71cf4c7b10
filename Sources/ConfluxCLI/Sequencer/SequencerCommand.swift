import ConfluxArguments
import ConfluxLog
import ConfluxNode
import ConfluxSequencer
import ConfluxWorker

/// `conflux sequencer`: owns the end of the log until it is asked to stop.
enum SequencerCommand {
    private static let bind = Option(
        "--bind", valueName: "ENDPOINT", default: "tcp://127.0.0.1:7400", parse: .text,
        summary: "Where nodes connect; port 0 for a free one, which the ready line tells.")
    private static let feed = Option<String?>(
        "--feed", valueName: "ENDPOINT", parse: .text,
        summary: "Where the feed is; the port above that of --bind unless given.")
    private static let data = Option<String?>(
        "--data", parse: .folder, summary: "The folder of the log; it is made if there is none.")
    private static let memory = Flag(
        "--memory", summary: "Keep the log in memory, and lose it when the process ends.")
    private static let durability = Option<SQLiteLogSettings.Durability>(
        "--durability", default: .fsync, parse: .choice,
        summary: """
            What a receipt proves: fsync, that the action outlives a crash of the machine; os, \
            that it outlives a crash of the process.
            """)
    /// The most events that wait to be printed. *At the bound* the oldest are lost.
    private static let eventsMax = 4_096
    private static let payloadMax = Option(
        "--payload-max", default: 1 << 20, parse: .byteSize(in: 1...32 << 20),
        summary: "The most bytes of one encoded action.")

    private static let exitOnFailure = Flag(
        "--exit-on-log-failure",
        summary: "End when the log fails, instead of trying again until the disk is well.")

    static let description = Command(
        "sequencer", summary: "Decide the order of actions, and keep them in a log.",
        discussion: """
            Prints a line that says ready once nodes are heard, then who joins and leaves. SIGINT \
            and SIGTERM end it cleanly: what was admitted is committed, and the log is closed.
            """,
        parameters: [
            bind, feed, data, memory, durability, payloadMax, exitOnFailure, WorkerOptions.json,
        ],
        groups: [.exactlyOne(data, memory)],
        examples: [
            .init("Keep the log on disk", "conflux sequencer --data /var/lib/conflux"),
            .init(
                "Try something out, on a free port",
                "conflux sequencer --memory --bind tcp://127.0.0.1:0"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let storage: SequencerConfiguration.Storage =
            if let folder = arguments[data] {
                .folder(folder, SQLiteLogSettings(durability: arguments[durability]))
            } else {
                .memory
            }
        var configuration = SequencerConfiguration(bind: arguments[bind], storage: storage)
        configuration.feed = arguments[feed]
        if arguments[exitOnFailure] { configuration.renewalPauseMax = nil }
        configuration.payloadBytesMax = UInt32(arguments[payloadMax])

        let (events, continuation) = AsyncStream.makeStream(
            of: SequencerEvent.self, bufferingPolicy: .bufferingNewest(Self.eventsMax))
        let sequencer: Sequencer
        do throws(SequencerError) {
            sequencer = try Sequencer.start(configuration) { event in
                continuation.yield(event)
                if case .ended = event { continuation.finish() }
            }
        } catch {
            throw failure(error)
        }
        environment.interruption.whenFired {
            Task { await sequencer.stop() }
        }
        for await event in events { tell(event, of: sequencer, environment) }
        return try end(await sequencer.ended(), environment)
    }

    private static func failure(_ error: SequencerError) -> CommandFailure {
        let exitCode: ExitCode =
            switch error.code {
            case .invalidAddress, .invalidSetting: .usage
            case .addressInUse, .logUnavailable: .cannotCreate
            case .failed: .failed
            }
        return CommandFailure(exitCode, code: error.code.rawValue, error.message)
    }

    private static func end(
        _ reason: SequencerEnd, _ environment: CommandEnvironment
    ) throws(CommandFailure) -> ExitCode {
        switch reason {
        case .stopped:
            environment.announce("stopped", text: "stopped")
            return .success
        case .superseded:
            throw CommandFailure(
                .superseded, "Another sequencer has taken over the log, so this one has stopped.")
        case .logFailed(let message):
            throw CommandFailure(.logFailed, "The log failed, so the sequencer stopped: \(message)")
        case .logDamaged(let message):
            throw CommandFailure(.logFailed, code: "logDamaged", message)
        }
    }

    private static func tell(
        _ event: SequencerEvent, of sequencer: Sequencer, _ environment: CommandEnvironment
    ) {
        switch event {
        case .serving(let log, let epoch, let last):
            environment.announce(
                "ready",
                [
                    "address": .string(sequencer.address), "epoch": .number(epoch),
                    "feed": .string(sequencer.feedAddress), "last": .number(last),
                    "log": .string(log.description),
                ],
                text: """
                    ready at \(sequencer.address), feed at \(sequencer.feedAddress): epoch \
                    \(epoch) of log \(log), which ends at \(last)
                    """)
        case .note(let note): tell(note, environment)
        case .tenureFailed(let message, let pause):
            // It is an event, and somebody has to do something about it.
            environment.diagnostics.report(
                CommandFailure(.logFailed, "The log failed; trying again in \(pause): \(message)"))
            let milliseconds = UInt64(clamping: Int64(pause / .milliseconds(1)))
            environment.announce(
                "logFailed",
                ["message": .string(message), "pauseMilliseconds": .number(milliseconds)],
                text: "the log failed; trying again in \(pause): \(message)")
        case .checkpointSaved(let sequence, let bytes):
            environment.announce(
                "checkpoint", ["bytes": .number(UInt64(bytes)), "sequence": .number(sequence)],
                text: "checkpoint at \(sequence), of \(bytes) bytes")
        case .checkpointFailed(let message):
            environment.announce(
                "checkpointFailed", ["message": .string(message)],
                text: "a checkpoint could not be made: \(message)")
        case .ended: break
        }
    }

    private static func tell(_ note: SequencerNote, _ environment: CommandEnvironment) {
        func session(_ incarnation: Incarnation, _ name: Name?) -> JSONObject {
            var fields: JSONObject = ["incarnation": .number(incarnation)]
            fields["name"] = name.map { .string($0.text) }
            return fields
        }
        func words(_ incarnation: Incarnation, _ name: Name?) -> String {
            name.map { "\($0) (node \(incarnation))" } ?? "node \(incarnation)"
        }
        switch note {
        case .joined(let incarnation, let name):
            environment.announce(
                "joined", session(incarnation, name), text: "joined: \(words(incarnation, name))")
        case .left(let incarnation, let name):
            environment.announce(
                "left", session(incarnation, name), text: "left: \(words(incarnation, name))")
        case .recovered: break  // the ready line says where the log ends
        case .checkpointSetAside(let sequence, let reason):
            environment.announce(
                "checkpointSetAside",
                ["reason": .string(reason), "sequence": .number(sequence)],
                text: "the checkpoint at \(sequence) could not be used: \(reason)")
        case .created(let store, let life):
            environment.announce(
                "created", ["life": .number(life), "store": .string(store.description)],
                text: "created: \(store), by entry \(life)")
        case .dropped(let store, let life):
            environment.announce(
                "dropped", ["life": .number(life), "store": .string(store.description)],
                text: "dropped: \(store), which entry \(life) created")
        case .upgraded(let store, let version):
            environment.announce(
                "upgraded",
                [
                    "schemaVersion": .number(UInt64(version)),
                    "store": .string(store.description),
                ], text: "upgraded: \(store) has schema version \(version) now")
        case .frozen(let store, let reason):
            environment.announce(
                "frozen",
                ["reason": .string("\(reason)"), "store": .string(store.description)],
                text: "frozen: \(store) (\(reason)); conflux thaw \(store) has it go on")
        case .thawed(let store):
            environment.announce(
                "thawed", ["store": .string(store.description)], text: "thawed: \(store)")
        case .skipped(let sequence, let target):
            environment.announce(
                "skipped",
                ["skipped": .number(sequence), "target": .string(target.description)],
                text: "entry \(sequence) has no effect on \(target) any more")
        case .snapshotTaken(let place, let bytes):
            environment.announce(
                "snapshot",
                [
                    "bytes": .number(bytes), "sequence": .number(place.sequence),
                    "store": .string(place.store.description),
                ], text: "snapshot of \(place.store) at \(place.sequence), of \(bytes) bytes")
        case .snapshotFailed(let place, let reason):
            environment.announce(
                "snapshotFailed",
                [
                    "reason": .string(reason), "sequence": .number(place.sequence),
                    "store": .string(place.store.description),
                ],
                text: "no snapshot of \(place.store) at \(place.sequence): \(reason)")
        case .diverged(let store, let status): tell(store, status, environment)
        case .converged(let store, let sequence):
            environment.announce(
                "converged",
                ["sequence": .number(sequence), "store": .string(store.description)],
                text: "the replicas of \(store) are the same again, at \(sequence)")
        case .truncated(let floor):
            environment.announce(
                "truncated", ["floor": .number(floor)], text: "the log begins at \(floor)")
        case .truncateFailed(let message):
            environment.announce(
                "truncateFailed", ["message": .string(message)],
                text: "what is not needed any more could not be given up: \(message)")
        case .unreadable(let message):
            environment.announce(
                "unreadable", ["message": .string(message)],
                text: "a frame could not be read and was ignored: \(message)")
        case .slowed(let lagging, let live):
            environment.announce(
                "slowed", ["lagging": .number(UInt64(lagging)), "live": .number(UInt64(live))],
                text: "\(lagging) of \(live) replicas lag; admitting slowly")
        case .resumed:
            environment.announce("resumed", text: "admitting as usual")
        case .challenged(let epoch):
            environment.announce(
                "challenged", ["epoch": .number(epoch)],
                text: "a node knows epoch \(epoch); asking the log whether this tenure is over")
        case .historyLost(let name, let from, let through):
            var fields: JSONObject = ["from": .number(from), "through": .number(through)]
            fields["name"] = name.map { .string($0.text) }
            environment.announce(
                "historyLost", fields,
                text: """
                    \(name.map { "\($0)" } ?? "a node") had entries \(from) to \(through), which \
                    this log does not have; it loads its stores anew
                    """)
        }
    }

    private static func tell(
        _ store: StoreName, _ status: DivergenceStatus, _ environment: CommandEnvironment
    ) {
        let nodes = status.nodes.map(\.description).joined(separator: ", ")
        var fields: JSONObject = [
            "firstUnequal": .number(status.firstUnequal), "lastEqual": .number(status.lastEqual),
            "majority": .bool(status.isMajority), "nodes": .texts(status.nodes),
            "store": .string(store.description),
        ]
        fields["path"] = status.path.map { .string($0) }
        environment.announce(
            "diverged", fields,
            text: """
                the replicas of \(store) differ since an entry between \(status.lastEqual) and \
                \(status.firstUnequal)\(status.path.map { ", at \($0)" } ?? ""): \
                \(status.isMajority ? "nodes \(nodes) load the majority's state"
                    : "nodes \(nodes) have no majority, and nobody reloads")
                """)
    }
}
