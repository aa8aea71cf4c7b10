import ConfluxArguments
import ConfluxLog
import ConfluxWorker

/// `conflux restore`: makes a log from a copy of it.
enum RestoreCommand {
    private static let source = Operand(
        "SOURCE", parse: .folder, summary: "The folder of a backup. It stays as it is.")
    private static let data = Option<String>(
        required: "--data", parse: .folder,
        summary: "A folder without a log. It is created if it does not exist.")
    private static let expect = Option<LogAnchor?>(
        "--expect", parse: .anchor,
        summary: """
            Restore nothing unless the backup has this anchor, which conflux backup or conflux \
            log --verify printed.
            """)

    static let description = Command(
        "restore", summary: "Make a log from a backup.",
        discussion: """
            Copies the backup, and checks every entry and every snapshot of the copy. The folder \
            has a log only if all of it is whole. It is the log of the backup, with the same \
            identity, as it was then. When a sequencer serves it, nodes that have seen more \
            report it, and reload their stores. You lose every later entry, even those with \
            receipts. Never run two sequencers with copies of one log: no sequencer may serve \
            SOURCE.

            Somebody who changes a backup can make it look whole, but then it no longer has the \
            anchor that you keep on another machine. Give that to --expect.
            """,
        parameters: [source, data, expect, WorkerOptions.json],
        examples: [
            .init(
                "Go back to a backup",
                "conflux restore /backups/2026-05-01 --data /var/lib/conflux"),
            .init(
                "Go back to it only if nobody has changed it",
                "conflux restore /backups/2026-05-01 --data /var/lib/conflux "
                    + "--expect \"$(cat anchor)\""),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let target = arguments[data]
        let anchor = arguments[expect]
        let file = try failing { () throws(LogError) in
            let file = try SQLiteLogFile(directory: arguments[source])
            guard try !file.isOwned() else {
                throw LogError(
                    .inUse,
                    "The log in \(arguments[source]) is served. End its sequencer first, or copy it "
                        + "with \"conflux backup\": two sequencers must not serve one log.")
            }
            return file
        }
        defer { file.close() }
        let verification: LogVerification
        do throws(CommandFailure) {
            verification = try file.copy(
                from: arguments[source], to: target, expecting: anchor, environment
            ) { _ in false }
        } catch {
            throw CommandFailure(
                error.exitCode, code: error.code, "Nothing was restored. \(error.message)")
        }
        let found = anchor.map { ", with the anchor of entry \($0.number)" } ?? ""
        environment.show(
            verification.fields, "restored to \(target)\(found): \(verification.text)")
        environment.diagnostics.note(
            "nodes that have seen more than entry \(verification.last) will be told that it is lost, "
                + "and reload their stores; what they dispatched since may end unknown")
        return .success
    }
}
