import ConfluxArguments
import ConfluxLog
import ConfluxNode
import ConfluxSequencer
import ConfluxSystem
import ConfluxWorker
import Foundation

/// `conflux bench`: measures how long a receipt takes, and how many actions a second get one. It measures a running
/// sequencer, or one that the command starts.
enum BenchCommand {
    private static let memory = Flag(
        "--memory", summary: "Measure a sequencer of the command's own, with its log in memory.")
    private static let data = Option<String?>(
        "--data", parse: .folder,
        summary: """
            Measure a sequencer of the command's own, with its log on disk, in a new folder \
            inside this one. The command removes the new folder at the end.
            """)
    private static let single = Option(
        "--single", default: 2_000, parse: .integer(in: 0...1_000_000),
        summary: "How many actions are sent one at a time; 0 for none.")
    private static let stream = Option(
        "--stream", default: 200_000, parse: .integer(in: 0...100_000_000),
        summary: "How many actions are sent as a stream; 0 for none.")
    private static let inFlight = Option(
        "--in-flight", default: 4_096, parse: .integer(in: 1...65_536),
        summary: """
            How many actions of the stream wait for their receipts at most; fewer if they would \
            have more than 4 MiB.
            """)
    private static let payload = Option(
        "--payload", default: 64, parse: .byteSize(in: 1...1 << 20),
        summary: "The size of an action.")

    static let description = Command(
        "bench", summary: "Measure how fast actions get their receipts.",
        discussion: """
            First, each action waits for the receipt of the one before. Then a stream of actions \
            is sent, of which a bounded number wait for their receipts. A receipt means that the \
            action is in the log. Without --memory or --data, the command measures the sequencer \
            at --connect, beside its other work. The actions stay in its log; they are for the \
            state \(BenchState.name), which has no stores. With keys, you need the rights to \
            dispatch to it and to host it.
            """,
        parameters: [memory, data, single, stream, inFlight, payload] + Connection.parameters,
        groups: [.atMostOne(memory, data)],
        examples: [
            .init("See what this machine can do, with fsync", "conflux bench --data /var/tmp"),
            .init(
                "Measure a running sequencer, with few actions",
                "conflux bench --connect tcp://10.0.0.5:7400 --stream 10000"),
        ])

    /// Checks that the options are about one sequencer. A variable or a context may still name another one.
    static func validate(_ arguments: Invocation) throws(UsageError) {
        let own = arguments[memory] ? "--memory" : arguments[data].map { _ in "--data" }
        guard let own else { return }
        let others: [any ParameterKey] = [
            WorkerOptions.connect, WorkerOptions.secret, WorkerOptions.serverKey,
            ContextCommand.option,
        ]
        if let other = arguments.firstGiven(of: others) {
            throw arguments.usageError(
                """
                \(own) measures a sequencer of the command's own, and \(other) is about another one: leave out one \
                of them
                """)
        }
    }

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let folder = environment.arguments[data].map {
            "\($0)/conflux-bench-\(UUID().uuidString)"
        }
        guard let storage = storage(environment.arguments, folder) else {
            return try await measure(
                environment, at: nil, what: environment.arguments[WorkerOptions.connect])
        }
        let sequencer = try failing { () throws(SequencerError) in
            try Sequencer.start(
                SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: storage))
        }
        let what = folder == nil ? "its own, log in memory" : "its own, log on disk with fsync"
        let result = await Result { () async throws(CommandFailure) in
            try await measure(environment, at: sequencer.address, what: what)
        }
        await sequencer.stop()
        _ = await sequencer.ended()
        if let folder {
            do throws(SystemFailure) {
                try Folder.remove(folder)
            } catch {
                let reason = error.reason(advice: "Remove it yourself.")
                throw CommandFailure(
                    .failed,
                    "The log of the measurement in \(folder) can't be removed: \(reason)")
            }
        }
        return try result.get()
    }

    /// - Returns: Where the command's own sequencer keeps its log; nil if the command starts none.
    private static func storage(
        _ arguments: Invocation, _ folder: String?
    ) -> SequencerConfiguration.Storage? {
        if let folder { return .folder(folder, SQLiteLogSettings()) }
        return arguments[memory] ? .memory : nil
    }

    private static func measure(
        _ environment: CommandEnvironment, at address: String?, what: String
    ) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        var settings = NodeSettings()
        settings.payloadBytesMax = 1 << 20
        let workload = BenchWorkload(
            payloadBytes: arguments[payload], singleCount: arguments[single],
            streamCount: arguments[stream], inFlightMax: arguments[inFlight])
        let progress = ProgressLine(isOn: true)
        let figures = try await Connection.use(
            environment, at: address, as: .member, settings: settings
        ) { connection async throws(CommandFailure) in
            defer { progress.clear() }
            return try await workload.run(by: connection, progress)
        }
        environment.show(figures.fields, figures.lines(of: what).joined(separator: "\n"))
        return .success
    }
}
