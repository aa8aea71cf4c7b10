import ConfluxArguments
import ConfluxGateway
import ConfluxLog
import ConfluxMonitoring
import ConfluxNode
import ConfluxSequencer
import ConfluxWorker
import Foundation

/// `conflux sequencer`: runs a sequencer, until it is asked to stop.
enum SequencerCommand {
    private static let bind = Option(
        "--bind", valueName: "ENDPOINT", default: "tcp://127.0.0.1:7400", parse: .text,
        summary:
            "Where nodes connect: tcp://host:port, or ipc:///path if they are on this machine. With port 0 the "
            + "system chooses one; the ready line shows it."
    )
    private static let feed = Option<String?>(
        "--feed", valueName: "ENDPOINT", parse: .text,
        summary:
            "Where the feed is. If omitted, on the port above that of --bind, or at its path with .feed."
    )
    private static let relays = Option<[String]>(
        repeated: "--relay", valueName: "ADDRESS", parse: .text,
        summary: """
            Where a relay of this feed listens (conflux relay). Nodes that are not told where their feed comes from \
            take it from one of the relays, and from the sequencer itself if they reach none.
            """)
    private static let data = Option<String?>(
        "--data", parse: .folder,
        summary: "The folder of the log. It is created if it does not exist.")
    private static let memory = Flag(
        "--memory", summary: "Keep the log in memory, and lose it when the process ends.")
    private static let log = EtcdOptions.log
    private static let durability = Option<SQLiteLogSettings.Durability>(
        "--durability", default: .fsync, parse: .choice,
        summary: """
            What a receipt proves. fsync: the action outlives a crash of the machine. os: it \
            outlives a crash of the process.
            """)
    /// The most events that may wait to be printed. *At the bound* the oldest are lost.
    private static let eventsMax = 4_096
    private static let payloadMax = Option(
        "--payload-max", default: 1 << 20, parse: .byteSize(in: 1...32 << 20),
        summary: "The largest size of one encoded action.")

    private static let keepBytes = Option<Int?>(
        "--keep-bytes", valueName: "SIZE", parse: .byteSize(in: 1 << 20...1 << 50),
        summary: """
            Discard the oldest entries once the log is larger than this. If omitted, 256 MiB, or a quarter of \
            --log-limit if that is less.
            """)
    private static let keepEntries = Option<UInt64?>(
        "--keep-entries", parse: .integer(in: 1...UInt64(Int64.max)),
        summary: "Discard the oldest entries once the log has more entries than this.")
    private static let keepFor = Option<Duration?>(
        "--keep-for", parse: .duration(in: .seconds(1) ... .seconds(36_500 * 86_400)),
        summary: "Discard entries once they are older than this.")

    private static let secret = Option<String?>(
        "--curve-secret", valueName: "FILE", parse: .text,
        summary: """
            The sequencer's secret key, as conflux keygen writes it. Connections are encrypted, \
            and only keys in --authorized may connect.
            """)
    private static let authorized = Option<String?>(
        "--authorized", valueName: "FILE", parse: .text,
        summary: """
            Who may connect, and do what: a name, a public key and rights on each line. On \
            SIGHUP and conflux reload the sequencer reads the file again, and ends the \
            connections of changed keys.
            """)
    private static let insecure = Flag(
        "--insecure",
        summary: """
            Let everybody who can reach the addresses connect, and encrypt nothing. Without \
            keys, addresses that are not on the loopback interface need this option.
            """)

    private static let busyPoll = Option(
        "--busy-poll", default: .microseconds(200),
        parse: .duration(in: .zero ... .milliseconds(10)),
        summary: """
            How long to poll for the next message before sleeping, if the last one arrived within that time. \
            Polling shortens the time to an outcome, and keeps a processor busy. Use 0s in a container with a \
            quota of processor time.
            """)

    private static let silence = Option(
        "--silence", default: .seconds(10),
        parse: .duration(in: .milliseconds(500) ... .seconds(600)),
        summary: """
            After how long a node that says nothing has left. Then others may have its name, and its leases end. A \
            process that is paused for longer loses them.
            """)

    private static let exitOnFailure = Flag(
        "--exit-on-log-failure",
        summary: "End when the log fails, instead of trying again until the disk works.")

    static let description = Command(
        "sequencer", summary: "Decide the order of actions, and keep them in a log.",
        discussion: """
            Prints a line that says ready once it serves nodes, then a line for each event. With \
            --log, if another sequencer serves, it prints standby, follows the log, and takes \
            over when the other one ends. SIGINT and SIGTERM end it cleanly: it commits what it \
            has admitted, and closes the log.

            The log discards an entry if one of the --keep options allows it and nobody can need \
            it. Nobody can need an entry if each hosted store that it concerns has a newer \
            snapshot (for other stores it is kept aside), and if two newer checkpoints exist. \
            One is made for each quarter of --keep-bytes, and at least for each 64 MiB. A log that \
            is nearly as large as --log-limit keeps less than the --keep options say. conflux log \
            does not show discarded entries.
            """,
        parameters: [
            bind, feed, relays, data, memory, log,
        ] + EtcdOptions.parameters + [
            durability, keepBytes, keepEntries, keepFor, payloadMax,
            secret, authorized, insecure, exitOnFailure, silence, busyPoll, MonitoringOptions.http,
            MonitoringOptions.httpToken, EventLevel.option, WorkerOptions.json,
        ],
        groups: [.exactlyOne(data, memory, log)],
        examples: [
            .init("Keep the log on disk", "conflux sequencer --data /var/lib/conflux"),
            .init(
                "Try something out, on a free port",
                "conflux sequencer --memory --bind tcp://127.0.0.1:0"),
            .init(
                "Keep a week of the log, and at most 10 GiB",
                "conflux sequencer --data /var/lib/conflux --keep-bytes 10GiB --keep-for 7d"),
            .init(
                "Keep the log on etcd",
                "conflux sequencer --log etcds://a:2379,b:2379,c:2379/conflux --log-ca ca.pem"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let storage: SequencerConfiguration.Storage =
            if let folder = arguments[data] {
                .folder(folder, diskSettings(arguments, folder))
            } else if let address = arguments[log] {
                try EtcdOptions.storage(at: address, environment)
            } else {
                .boundedMemory(limitBytes: arguments[EtcdOptions.limit] ?? 1 << 30)
            }
        var configuration = SequencerConfiguration(bind: arguments[bind], storage: storage)
        configuration.feed = arguments[feed]
        configuration.relays = arguments[relays].flatMap {
            $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        configuration.advertise = arguments[EtcdOptions.advertise]
        if arguments[exitOnFailure] { configuration.renewalPauseMax = nil }
        configuration.payloadBytesMax = UInt32(arguments[payloadMax])
        configuration.busyPollMax = arguments[busyPoll]
        let silence = arguments[silence]
        configuration.adjust = { $0.hear(within: silence) }
        keep(arguments, &configuration)
        configuration.access = try access(arguments)
        let monitoring = try MonitoringOptions(arguments)

        let manager = try ServiceManager.find(environment.diagnostics)
        defer { manager?.stopping() }
        let (events, continuation) = AsyncStream.makeStream(
            of: SequencerEvent.self, bufferingPolicy: .bufferingNewest(Self.eventsMax))
        let sequencer = try failing { [configuration] () throws(SequencerError) in
            try Sequencer.start(configuration) { event in
                continuation.yield(event)
                if case .ended = event { continuation.finish() }
            }
        }
        let server: HTTPServer?
        do throws(CommandFailure) {
            server = try monitoring?.serve(monitored(sequencer, environment))
        } catch {
            await sequencer.stop()
            throw error
        }
        environment.interruption.whenFired {
            manager?.stopping()
            Task { await sequencer.stop() }
        }
        let isInsecure =
            if case .insecure = configuration.access { true } else { false }
        if arguments[authorized] != nil { Signals.handle(SIGHUP) { sequencer.reload() } }
        var telling = SequencerTelling(
            sequencer, isInsecure: isInsecure, http: server?.address,
            place: arguments[log]?.description, environment)
        for await event in events {
            telling.tell(event)
            if isReady(event) { manager?.ready { sequencer.probe($0) } }
        }
        let reason = await sequencer.ended()
        return try withExtendedLifetime(server) { () throws(CommandFailure) in
            try end(reason, environment)
        }
    }

    /// Whether the sequencer is ready after this event: it serves, or it could take over.
    private static func isReady(_ event: SequencerEvent) -> Bool {
        switch event {
        case .serving: true
        case .standingBy(let standing, _): standing.failure == nil
        default: false
        }
    }

    /// What the monitoring server provides over HTTP.
    private static func monitored(
        _ sequencer: Sequencer, _ environment: CommandEnvironment
    ) -> Monitored {
        let process = ProcessFamilies(
            program: environment.arguments.path.joined(separator: " "),
            version: ConfluxRelease.version)
        let folder = environment.arguments[data]
        return Monitored(
            metrics: {
                let metrics = sequencer.metrics()
                return process.families(
                    isReady: metrics.readinessFaults.isEmpty, bounds: metrics.bounds)
                    + SequencerFamilies(metrics: metrics, folder: folder).all
            },
            livenessFaults: { sequencer.metrics().livenessFaults },
            readinessFaults: { sequencer.metrics().readinessFaults })
    }

    /// Who may connect.
    private static func access(
        _ arguments: Invocation
    ) throws(CommandFailure) -> SequencerConfiguration.Access {
        switch (arguments[secret], arguments[authorized], arguments[insecure]) {
        case (nil, nil, let isInsecure): return isInsecure ? .insecure : .local
        case (let secret?, let authorized?, false):
            let keys = try failing { () throws(AuthorizedKeysError) in
                try AuthorizedKeys.read(authorized)
            }
            let own = try failing { () throws(KeyFileError) in try KeyFile.readPair(secret) }
            return .keys(own, authorized: keys) {
                Result { () throws(AuthorizedKeysError) in try AuthorizedKeys.read(authorized) }
            }
        case (_, _, true):
            throw CommandFailure(
                .usage, code: "usage",
                "--insecure lets everybody connect. Leave out either it or the keys.")
        case (nil, _, _), (_, nil, _):
            throw CommandFailure(
                .usage, code: "usage",
                """
                Give --curve-secret and --authorized together: the first says who the sequencer is, the \
                second who may connect.
                """)
        }
    }

    /// Sets how much of the log is kept. An entry is given up only after two newer checkpoints exist, so the size to
    /// keep also decides how often they are made.
    static func keep(_ arguments: Invocation, _ configuration: inout SequencerConfiguration) {
        let limit =
            switch configuration.storage {
            case .folder(_, let settings): settings.limitBytes ?? .max
            case .memory: 1 << 30
            case .boundedMemory(let bytes): bytes
            case .opened, .shared: arguments[EtcdOptions.limit] ?? 2 << 30
            }
        let bytes = arguments[keepBytes] ?? min(256 << 20, limit / 4)
        configuration.retention.bytesMax = UInt64(bytes)
        configuration.retention.ageMax = arguments[keepFor]
        if let entries = arguments[keepEntries] {
            configuration.retention.entriesMax = entries
        }
        configuration.checkpointBytes = min(configuration.checkpointBytes, bytes / 4)
    }

    /// The settings of a log on disk. The bound follows the file system of the folder.
    private static func diskSettings(
        _ arguments: Invocation, _ folder: String
    ) -> SQLiteLogSettings {
        var settings = SQLiteLogSettings(durability: arguments[durability])
        settings.limitBytes =
            arguments[EtcdOptions.limit] ?? SQLiteLogSettings.limitBytes(forVolumeOf: folder)
        return settings
    }

    private static func end(
        _ reason: SequencerEnd, _ environment: CommandEnvironment
    ) throws(CommandFailure) -> ExitCode {
        switch reason {
        case .stopped, .handedOver:
            environment.announce("stopped", text: "stopped")
            return .success
        case .superseded:
            throw CommandFailure(
                .superseded,
                """
                Another sequencer has taken over the log, so this one has stopped. Leave it stopped, or \
                end the other one first: one sequencer serves a log.
                """)
        case .logFailed(let message, _):
            throw CommandFailure(.logFailed, "The log failed, so the sequencer stopped: \(message)")
        case .logDamaged(let message):
            throw CommandFailure(.logFailed, code: "logDamaged", message)
        case .logMoved(let message):
            throw CommandFailure(.logFailed, code: "logMoved", message)
        }
    }
}

extension SequencerSettings {
    /// Sets after how long a node that says nothing has left.
    fileprivate mutating func hear(within silence: Duration) {
        silenceMax = silence
        // A node says something in each interval, and some of that may be late.
        beatInterval = min(beatInterval, silence / 10)
    }
}

extension SequencerError: CommandError {
    package var failure: CommandFailure {
        let exitCode: ExitCode =
            switch code {
            case .invalidAddress, .invalidSetting, .insecure: .usage
            case .addressInUse, .addressUnavailable, .logUnavailable: .cannotCreate
            case .failed: .failed
            }
        return CommandFailure(exitCode, code: code.rawValue, message)
    }
}
