import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux log export`: writes a range of the log to a file, with the states that it begins with.
enum ExportCommand {
    private static let file = Operand(
        "FILE", parse: .file, summary: "The file to write. It appears whole or not at all.")
    private static let from = Option<SequenceNumber?>(
        "--from", valueName: "SEQ", parse: .sequence,
        summary: "The first entry. If omitted, the first one before which every store has a state.")
    private static let to = Option<SequenceNumber?>(
        "--to", valueName: "SEQ", parse: .sequence,
        summary: """
            The last entry. If omitted, the log's last one. If the log does not have it yet, the \
            command waits for it.
            """)
    private static let target = Option<Target?>(
        "--target", parse: .target,
        summary: "Only one store, or every store of a state: state/*.")

    static let description = Command(
        "export", summary: "Write a range of the log to a file, for a test.",
        discussion: """
            The file has the entries, and each store's state before the first of them. A test \
            replays it with the code at hand, and says where that code differs \
            (ConfluxTesting). The command reads through the sequencer, and makes no entries.

            The log keeps only the newest snapshots, so a range can begin behind the newest \
            snapshot of each store, or at any entry before which the store did not exist. To get \
            a long range, let the log keep everything from the beginning, or give a --to that is \
            still to come, and let the command run.
            """,
        parameters: [file, from, to, target] + Connection.followingParameters,
        examples: [
            .init("Write what the log can give", "conflux log export may.history"),
            .init(
                "Record the next million entries",
                "conflux log export --from 4000001 --to 5000000 may.history"),
        ])

    /// Checks the options, before the command runs.
    static func validate(_ arguments: Invocation) throws(UsageError) {
        if let from = arguments[from], let to = arguments[to], from > to {
            throw arguments.usageError("--from \(from) is after --to \(to)")
        }
    }

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let export = HistoryExport(environment.arguments[target])
        do throws(CommandFailure) {
            try await Connection.use(
                environment, tap: { export.take($0) },
                watch: { event in
                    if let failure = CommandFailure(readingEndsAt: event) {
                        export.reading.end(failure)
                    }
                }
            ) { connection async throws(CommandFailure) in
                try await write(environment, connection, export)
            }
        } catch {
            export.abandon()
            throw error
        }
        return .success
    }

    private static func write(
        _ environment: CommandEnvironment, _ connection: Connection, _ export: HistoryExport
    ) async throws(CommandFailure) {
        let arguments = environment.arguments
        let status = try await connection.status()
        var starts: [ReadStart] = []
        let last = arguments[to] ?? status.last
        for store in status.stores
        where store.life <= last && arguments[target].map({ $0.concerns(store.store) }) ?? true {
            // A store that was dropped meanwhile is no longer there; its end in the log says so.
            if let start = try await connection.start(of: store.store) { starts.append(start) }
        }
        let range = try HistoryRange(
            from: arguments[from], through: last, of: status, starts)
        try export.begin(range, log: status.log, in: arguments[file])
        for start in range.starts { try export.write(.start(try await connection.load(start))) }
        for start in starts { try await writeCheck(start, range, connection, export) }
        if range.first <= range.last {
            try await connection.follow(from: range.first)
            let isWaiting = range.last > status.last
            if isWaiting {
                environment.diagnostics.note("waiting for entry \(range.last)")
                if starts.isEmpty, let target = arguments[target] {
                    environment.diagnostics.note(
                        "there is no \(target) now; waiting for its entries")
                }
            }
            // Only what the log already has comes at once.
            if !isWaiting {
                export.reading.limitPauses(to: connection.timeout, from: connection.core.address)
            }
            if let failure = await export.reading.ended() { throw failure }
            guard !Task.isCancelled else {
                throw CommandFailure(
                    .interrupted,
                    "The export was interrupted, and there is no file. Run it again.")
            }
        }
        for store in export.stores {
            guard let start = try await connection.start(of: store) else { continue }
            try await writeCheck(start, range, connection, export)
        }
        let figures = try export.complete()
        environment.show(
            [
                "actions": figures.actions, "from": figures.first, "log": status.log,
                "stores": figures.stores, "through": figures.last,
            ],
            """
            exported entries \(figures.first) to \(figures.last) of log \(status.log): \
            \(figures.actions) actions, and the first states of \(figures.stores) stores
            """)
    }

    /// Writes a store's newest snapshot, if it is within the range: the replicas agreed on it.
    private static func writeCheck(
        _ start: ReadStart, _ range: HistoryRange, _ connection: Connection, _ export: HistoryExport
    ) async throws(CommandFailure) {
        guard case .saved(let reference) = start.offer, reference.sequence >= range.first,
            reference.sequence <= range.last
        else { return }
        let place = SnapshotPlace(
            store: start.store, life: start.life, sequence: reference.sequence)
        guard export.isNew(place), let bytes = try await connection.bytes(place, reference) else {
            return
        }
        try export.write(
            .check(
                place,
                Snapshot(
                    sequence: reference.sequence, schemaVersion: reference.schemaVersion,
                    state: EncodedState(coding: .json, bytes: bytes))))
    }
}
