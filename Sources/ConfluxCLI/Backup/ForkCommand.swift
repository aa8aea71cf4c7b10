import ConfluxArguments
import ConfluxLog
import ConfluxNode
import ConfluxWorker
import Foundation

/// `conflux fork`: another log with the same entries up to a number, to try something on it.
enum ForkCommand {
    private static let destination = Operand(
        "DESTINATION", parse: .folder,
        summary: "An empty folder. It is created if it does not exist.")
    private static let data = Option<String>(
        required: "--data", parse: .folder, summary: "The folder of the log.")
    private static let at = Option<SequenceNumber?>(
        "--at", valueName: "SEQ", parse: .sequence,
        summary: "The last entry to take over. If omitted, the log's last one.")

    static let description = Command(
        "fork", summary: "Make another log of a log's beginning, while its sequencer serves.",
        discussion: """
            Makes a log of its own: with the entries up to --at, a new log id, and a term of its \
            own. Serve it with conflux sequencer --data DESTINATION beside the old one, and try a \
            migration or a new program on real states. No node takes one log for the other. The \
            entry "forked" behind the last one taken over names the old log: conflux log shows \
            it, and a backup has none. Every entry and snapshot is checked.

            Run it on the machine of the log, which is only read. Timers of the old log are in \
            the fork, too, and fire there: run no program there whose effects are outside. Random \
            numbers of reducers follow from the log id, so the entries behind a store's snapshot \
            draw others in the fork.
            """,
        parameters: [destination, data, at, WorkerOptions.json],
        examples: [
            .init(
                "Try a migration on today's states",
                "conflux fork /tmp/trial --data /var/lib/conflux --at 4711")
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let target = arguments[destination]
        try checkEmpty(target)
        let file = try failing { () throws(LogError) in
            try SQLiteLogFile(directory: arguments[data])
        }
        defer { file.close() }
        let last = arguments[at] ?? file.last
        let progress = LogProgress()
        defer { progress.end() }
        var verification: LogVerification?
        let isEnded = { environment.interruption.reason != nil }
        try LogFork.make(
            of: file, through: last, in: target, unless: isEnded, progress: progress.checked
        ) { copy throws(CommandFailure) in
            verification = try LogVerification(
                of: copy, unless: isEnded, progress: progress.checked)
        }
        guard let verification else { preconditionFailure("a fork is checked") }
        let fields: JSONFields = ["at": last, "from": file.id]
        environment.show(
            verification.fields.merging(fields) { $1 },
            "forked log \(file.id) at \(last) to \(target): \(verification.text)")
        return .success
    }

    private static func checkEmpty(_ folder: String) throws(CommandFailure) {
        // What can't be listed is reported when it is made.
        guard let found = try? FileManager.default.contentsOfDirectory(atPath: folder).first else {
            return
        }
        throw CommandFailure(
            .cannotCreate, code: "notEmpty",
            "\(folder) is not empty: it has \(found). Give a folder that is empty, or does not exist yet."
        )
    }
}
