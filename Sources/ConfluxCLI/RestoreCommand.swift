import ConfluxArguments
import ConfluxLog
import ConfluxNode
import ConfluxWorker

/// `conflux restore`: a log from a copy of it.
enum RestoreCommand {
    private static let source = Operand(
        "SOURCE", parse: .folder, summary: "The folder of a backup. It stays as it is.")
    private static let data = Option<String>(
        required: "--data", parse: .folder,
        summary: "A folder without a log; it is made if there is none.")
    private static let expect = Option<LogAnchor?>(
        "--expect", parse: .anchor,
        summary: """
            Restore nothing unless the backup has this anchor, which conflux backup, or conflux log \
            --verify, has printed.
            """)

    static let description = Command(
        "restore", summary: "Make a log from a backup.",
        discussion: """
            Copies the backup, and checks every entry and every snapshot of the copy; only if all \
            of it is whole is there a log in the folder. It is the log that the backup was made \
            of, under the same name, as it was then: nodes that have seen more notice when a \
            sequencer serves it, say so, and load their stores anew. What was receipted since is \
            lost. Never run two sequencers with copies of one log: SOURCE must have none.

            Somebody who changes a backup can make it look whole, but not so that it has the anchor \
            that you keep on another machine: give it to --expect.
            """,
        parameters: [source, data, expect, WorkerOptions.json],
        examples: [
            .init(
                "Go back to a backup",
                "conflux restore /backups/2026-05-01 --data /var/lib/conflux"),
            .init(
                "Go back to it if nobody has changed it",
                "conflux restore /backups/2026-05-01 --data /var/lib/conflux "
                    + "--expect \"$(cat anchor)\""),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let target = arguments[data]
        let anchor = arguments[expect]
        var checked: Result<LogVerification, CommandFailure>?
        do throws(LogError) {
            let file = try SQLiteLogFile(directory: arguments[source])
            defer { file.close() }
            guard try !file.isOwned() else {
                throw LogError(
                    .inUse,
                    "The log in \(arguments[source]) is served. End its sequencer first, or copy it "
                        + "with \"conflux backup\": two sequencers must not serve one log.")
            }
            try file.copy(to: target) { copy in
                let result = Result { () throws(CommandFailure) in
                    try LogVerification(of: copy, expecting: anchor) {
                        environment.interruption.reason != nil
                    }
                }
                checked = result
                if case .success = result { return true }
                return false
            }
        } catch {
            throw CommandFailure(error)
        }
        guard let checked else { throw CommandFailure(.failed, "The copy was not checked.") }
        let verification: LogVerification
        do throws(CommandFailure) {
            verification = try checked.get()
        } catch {
            throw CommandFailure(
                error.exitCode, code: error.code, "\(error.message) Nothing was restored.")
        }
        if environment.isJSON {
            environment.output.print(verification.json)
        } else {
            let found = anchor.map { ", with the anchor of entry \($0.number)" } ?? ""
            environment.output.add("restored to \(target)\(found): \(verification.text)")
        }
        environment.diagnostics.note(
            "nodes that have seen more than entry \(verification.last) will be told that it is lost, "
                + "and load their stores anew; what they dispatched since may end unknown")
        return .success
    }
}
