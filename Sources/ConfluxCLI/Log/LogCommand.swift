import ConfluxArguments
import ConfluxLog
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker
import Foundation
import Synchronization

/// `conflux log`: shows the entries of the log in their order.
enum LogCommand {
    private static let from = Option<SequenceNumber?>(
        "--from", valueName: "SEQ", parse: .sequence,
        summary: "The first entry. If omitted, the oldest entry that the log still holds.")
    private static let tail = Option<UInt64?>(
        "--tail", valueName: "N", parse: .integer(in: 1...UInt64(Int64.max)),
        summary: "Begin with the last N entries of the log, whatever they are about.")
    private static let since = Option<Duration?>(
        "--since", parse: .duration(in: .seconds(1)...(.seconds(86_400 * 3_650))),
        summary: """
            Only entries that are at most this old, such as 10m. The sequencer's clock gave the \
            entries their times; the clock of this machine measures their age.
            """)
    private static let to = Option<SequenceNumber?>(
        "--to", valueName: "SEQ", parse: .sequence,
        summary: "The last entry. If omitted, the log's last one.")
    static let follow = Flag(
        "--follow", summary: "Follow new entries until SIGINT.")
    private static let target = Option<Target?>(
        "--target", parse: .target,
        summary: """
            Only entries that concern one store, or every store of a state: state/*. An action \
            for every store of a state concerns each of its stores.
            """)

    private static let verify = Option<String?>(
        "--verify", parse: .folder,
        summary: """
            Instead of showing entries, check every entry of the log in this folder. No \
            sequencer is asked, and a running one continues. Prints the anchor of the end.
            """)
    private static let expect = Option<LogAnchor?>(
        "--expect", parse: .anchor,
        summary: """
            With --verify: fail unless the log still has this anchor, which an earlier --verify \
            or conflux backup printed.
            """)

    static let description = Command(
        "log", summary: "Show the log: actions, and the log's own events.",
        discussion: """
            Shows entries in their order: actions, and the log's own events. Events about \
            sessions are claim, joined, left and forgotten. Events about stores are \
            created, upgraded, frozen, thawed and dropped. At a digestPoint, replicas compare \
            their states. A skipped event removes an entry's effect. The command reads through \
            the sequencer, and makes no entries.

            The log discards entries that nobody needs any more (see conflux sequencer --help). It \
            begins at the floor, which conflux status shows. If you ask for earlier entries, the \
            command says so, and begins at the floor.

            A log on disk has a chain of hashes beside its entries. --verify follows it, and \
            names the first entry that was changed. Somebody who changes a log can recompute all \
            hashes, but then the log no longer has the anchor, NUMBER:HASH, that you keep on \
            another machine. Give that to --expect.
            """,
        parameters: [
            from, to, tail, since, follow, target, verify, expect,
        ] + Connection.followingParameters,
        groups: [
            .atMostOne(to, follow), .atMostOne(from, tail, since), .atMostOne(verify, follow),
            .atMostOne(verify, from), .atMostOne(verify, to), .atMostOne(verify, target),
            .atMostOne(verify, tail), .atMostOne(verify, since),
        ],
        examples: [
            .init("Show everything", "conflux log"),
            .init("Show the end, and what follows", "conflux log --tail 20 --follow"),
            .init("Show a store's last hour", "conflux log --since 1h --target counter/shared"),
            .init(
                "Follow one store, as JSON", "conflux log --follow --target counter/shared --json"),
            .init("Check a log on disk", "conflux log --verify /var/lib/conflux"),
            .init(
                "Check that nobody changed it since you kept its anchor",
                "conflux log --verify /var/lib/conflux --expect \"$(cat anchor)\""),
        ],
        subcommands: [SkipCommand.description, ExportCommand.description], runsAlone: true)

    /// Checks the options, before the command runs.
    static func validate(_ arguments: Invocation) throws(UsageError) {
        if let from = arguments[from], let to = arguments[to], from > to {
            throw arguments.usageError("--from \(from) is after --to \(to)")
        }
        if arguments[expect] != nil, arguments[verify] == nil {
            throw arguments.usageError("--expect needs --verify")
        }
    }

    /// Checks every entry of a log on disk.
    private static func verify(
        _ folder: String, _ environment: CommandEnvironment
    ) throws(CommandFailure) -> ExitCode {
        let anchor = environment.arguments[expect]
        let progress = LogProgress()
        let file = try failing { () throws(LogError) in try SQLiteLogFile(directory: folder) }
        defer { file.close() }
        let verification = try Result { () throws(CommandFailure) in
            defer { progress.end() }
            return try LogVerification(
                of: file, expecting: anchor, unless: { environment.interruption.reason != nil },
                progress: progress.checked)
        }.get()
        let found = anchor.map { ", with the anchor of entry \($0.number)" } ?? ""
        environment.show(verification.fields, "intact\(found): \(verification.text)")
        return .success
    }

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        if let folder = arguments[verify] { return try verify(folder, environment) }
        let printer = EntryPrinter(
            environment.output, isJSON: environment.isJSON, target: arguments[target],
            since: arguments[since].map {
                Timestamp(Date(timeIntervalSinceNow: -($0 / .seconds(1))))
            }, tellChange: { tellChange(environment, from: $0) })
        // If this ends the command, the entries that could be read are shown all the same.
        let hasGap = Atomic(false)
        let exitCode = try await Connection.use(
            environment, tap: { printer.take($0) },
            watch: { event in
                guard let failure = CommandFailure(readingEndsAt: event) else { return }
                switch event {
                case .closed: printer.reading.end(failure)
                case .logDamaged(let from, let through, _) where printer.wants(from, through):
                    hasGap.store(true, ordering: .relaxed)
                    environment.diagnostics.report(failure)
                default: break
                }
            }
        ) { connection async throws(CommandFailure) in
            try await show(environment, connection, printer)
        }
        environment.output.flush()
        let isWhole = !hasGap.load(ordering: .relaxed)
        return exitCode == .success && !isWhole && !arguments[follow] ? .logFailed : exitCode
    }

    /// Tells, before the entries that follow, that they belong to another history.
    private static func tellChange(_ environment: CommandEnvironment, from: SequenceNumber) {
        environment.tellHistoryLost(
            ["from": from],
            "the log's history has changed, as after a restore from a backup: what follows begins again "
                + "at entry \(from)")
    }

    /// Whether a store or a bridge fits the target.
    private static func isKnown(_ target: Target, to status: SequencerStatus) -> Bool {
        status.stores.contains { target.concerns($0.store) }
            || status.sessions.contains { session in
                session.bridged.contains { target == .state($0) }
            }
    }

    private static func show(
        _ environment: CommandEnvironment, _ connection: Connection, _ printer: EntryPrinter
    ) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let isFollowing = arguments[follow]
        let status = try await connection.status()
        if let from = arguments[from], from < status.floor {
            environment.diagnostics.note(
                "the log begins at \(status.floor); earlier entries were discarded")
        }
        let tail = arguments[tail].map { count in
            SequenceNumber(status.last.rawValue - min(count, status.last.rawValue)).next
        }
        let first = max(arguments[from] ?? tail ?? status.floor, status.floor)
        let isKnown = arguments[target].map { Self.isKnown($0, to: status) } ?? true
        if isFollowing, !isKnown, let target = arguments[target] {
            environment.diagnostics.note("there is no \(target) now; waiting for its entries")
        }
        let last = isFollowing ? nil : min(arguments[to] ?? status.last, status.last)
        if let last, first > last {
            if arguments[from] != nil, first > status.last {
                environment.diagnostics.note(
                    "the log ends at entry \(status.last): there is no entry \(first) yet")
            }
            return .success
        }

        // Three things end the printing: the last entry, an interruption, and the end of the node.
        environment.interruption.whenFired { printer.reading.end() }
        let owners = status.sessions.compactMap { session in
            session.owner.map { (session.incarnation, $0) }
        }
        printer.begin(
            from: first, through: last, owners: Dictionary(uniqueKeysWithValues: owners))
        try await connection.follow(from: first)
        // With --follow it waits for new entries, and for a sequencer that is away, as long as it takes.
        if !isFollowing {
            printer.reading.limitPauses(to: connection.timeout, from: connection.core.address)
        }
        if let failure = await printer.reading.ended() { throw failure }
        guard let reason = environment.interruption.reason else {
            if !isFollowing, !isKnown, !printer.hasPrinted, let target = arguments[target] {
                throw CommandFailure(
                    .notFound, code: "nothingThere",
                    "There is no \(target), and no entry from \(first) on concerns it. conflux status shows "
                        + "which stores there are.")
            }
            return .success
        }
        return reason
    }
}

extension CommandFailure {
    /// Why no further entry can be read after an event of the node; nil if the event is about something else.
    init?(readingEndsAt event: NodeEvent) {
        switch event {
        case .closed(let message): self.init(.nodeRefused, code: "closed", message)
        case .logDamaged(let from, let through, let message):
            self.init(
                .logFailed, code: "damaged",
                "entries \(from) to \(through) can't be read in the log: \(message)")
        case .historyLost(let from, let through):
            self.init(
                .logFailed, code: "historyLost",
                "The log has lost the entries \(from) to \(through). Run the command again.")
        default: return nil
        }
    }
}

extension ValueParser where Value == SequenceNumber {
    /// The number of an entry.
    static var sequence: ValueParser<SequenceNumber> {
        ValueParser<UInt64>.integer(in: 1...UInt64(Int64.max)).map { SequenceNumber($0) }
    }
}

extension ValueParser where Value == LogAnchor {
    static let anchor = ValueParser(
        "NUMBER:HASH",
        expecting: "an anchor: a number, a colon and 64 hexadecimal digits, as --verify prints it"
    ) { LogAnchor($0) }
}
