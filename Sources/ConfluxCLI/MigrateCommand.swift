import ConfluxArguments
import ConfluxEtcd
import ConfluxLog
import ConfluxNode
import ConfluxVocabulary
import ConfluxWorker

/// `conflux migrate`: moves a log from one engine to another.
enum MigrateCommand {
    /// The place of a log.
    private enum Place: Sendable, Equatable, CustomStringConvertible {
        case folder(String)
        case etcd(EtcdAddress)

        init?(_ text: String) {
            if text.hasPrefix("etcd://") || text.hasPrefix("etcds://") {
                guard let address = EtcdAddress(text) else { return nil }
                self = .etcd(address)
            } else {
                guard !text.isEmpty, !text.contains("://"), !text.utf8.contains(0) else {
                    return nil
                }
                self = .folder(text)
            }
        }

        var description: String {
            switch self {
            case .folder(let path): path
            case .etcd(let address): "\(address)"
            }
        }

        /// The option of `conflux sequencer` for this place.
        var option: String {
            switch self {
            case .folder: "--data"
            case .etcd: "--log"
            }
        }
    }

    private static let place = ValueParser(
        "LOG",
        expecting: "a folder, or the address of a log on etcd: etcd://HOST:PORT,HOST:PORT/PREFIX"
    ) { Place($0) }

    private static let from = Option<Place>(
        required: "--from", parse: place,
        summary: "The log: a folder, or an address on etcd. No sequencer may serve it, or stand by."
    )
    private static let to = Option<Place>(
        required: "--to", parse: place,
        summary: "Where it goes: a folder or an address on etcd where no log is.")

    static let description = Command(
        "migrate", summary: "Move a log between a folder and etcd.",
        discussion: """
            Copies the log with its checkpoints and snapshots, compares every byte of the copy, and only then makes \
            the copy a log. It has the same identity: nodes and sessions go on where they were. End all sequencers \
            of the log first, and then start them with the new place. The old log stays as it is; \
            remove it once the new one serves. Never serve both.

            If the command is interrupted, nothing was moved. Run it again: it starts over.
            """,
        parameters: [from, to] + EtcdOptions.connection + [WorkerOptions.json],
        examples: [
            .init(
                "Move a log from a disk to etcd",
                "conflux migrate --from /var/lib/conflux --to etcd://a:2379,b:2379,c:2379/conflux"),
            .init(
                "Move it back",
                "conflux migrate --from etcd://a:2379,b:2379,c:2379/conflux --to /var/lib/conflux-new"
            ),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let (source, target) = (arguments[from], arguments[to])
        guard source != target else {
            throw CommandFailure(
                .usage, code: "usage", "--from and --to name the same place. Give two places.")
        }
        let sourceSettings = try etcdSettings(of: source, environment)
        let targetSettings = try etcdSettings(of: target, environment)
        let moved: JSONFields
        do throws(LogError) {
            let log = try open(source, sourceSettings)
            defer { log.close() }
            let line = ProgressLine(isOn: !environment.isJSON)
            defer { line.clear() }
            let (floor, last, begun) = (log.floor, log.last, ContinuousClock.now)
            let epoch = try LogCopy.make(of: log) { origin throws(LogError) in
                try begin(target, targetSettings, with: origin)
            } willTake: { step throws(LogError) in
                if environment.interruption.reason != nil { throw .closed }
                line.show(text(step, from: floor, to: last, ContinuousClock.now - begun))
            }
            moved = [
                "epoch": epoch, "floor": log.floor, "from": "\(source)", "last": log.last,
                "log": log.id, "to": "\(target)",
            ]
        } catch {
            throw failure(error, source, environment)
        }
        environment.show(
            moved,
            "moved the log from \(source) to \(target). Start its sequencers with \(target.option) "
                + "\(target); never serve \(source) again.")
        return .success
    }

    private static func text(
        _ step: LogCopy.Step, from floor: SequenceNumber, to last: SequenceNumber,
        _ elapsed: Duration
    ) -> String {
        let half = Int(last.next.rawValue - floor.rawValue)
        func text(_ next: SequenceNumber, behind count: Int) -> String {
            let done = Int(next.rawValue - floor.rawValue) + count
            return ProgressLine.text(done, of: 2 * half, .entries, elapsed: elapsed)
        }
        return switch step {
        case .entries(let next): "copying: \(text(next, behind: 0))"
        case .states: "checkpoints and snapshots"
        case .comparison(let next): "comparing: \(text(next, behind: half))"
        }
    }

    private static func failure(
        _ error: LogError, _ source: Place, _ environment: CommandEnvironment
    ) -> CommandFailure {
        // This counts even after an interruption: the copy may be the log already.
        if error.code == .unknownOutcome {
            return CommandFailure(.unknownOutcome, code: error.code.rawValue, error.message)
        }
        if environment.interruption.reason != nil {
            return CommandFailure(
                .interrupted,
                "The migration was interrupted. Nothing was moved, and \(source) is as it was. "
                    + "Run it again: it starts over.")
        }
        guard error.code == .superseded else { return error.failure }
        return CommandFailure(
            .logFailed, code: error.code.rawValue,
            "A sequencer claimed the log while it was copied, so nothing was moved. End all sequencers "
                + "of \(source), standbys too; then run the command again.")
    }

    private static func etcdSettings(
        of place: Place, _ environment: CommandEnvironment
    ) throws(CommandFailure) -> EtcdLogSettings? {
        guard case .etcd(let address) = place else { return nil }
        return try EtcdOptions.settings(at: address, environment)
    }

    private static func open(
        _ place: Place, _ settings: EtcdLogSettings?
    ) throws(LogError) -> any CopiedLog {
        if let settings { return try EtcdLog(copied: settings) }
        // First opened for reading only: opening it for writing would begin a log if there is none.
        try SQLiteLogFile(directory: place.description).close()
        return try SQLiteLog(directory: place.description)
    }

    private static func begin(
        _ place: Place, _ settings: EtcdLogSettings?, with origin: LogOrigin
    ) throws(LogError) -> any CopiedLog {
        if let settings { return try EtcdLog(copyWith: origin, settings) }
        return try SQLiteLog(copyWith: origin, in: place.description)
    }
}
