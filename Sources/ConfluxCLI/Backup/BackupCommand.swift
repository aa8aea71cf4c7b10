import ConfluxArguments
import ConfluxLog
import ConfluxSystem
import ConfluxWorker

/// `conflux backup`: a copy of a log, while its sequencer continues.
enum BackupCommand {
    private static let destination = Operand(
        "DESTINATION", parse: .folder,
        summary: "A folder without a log. It is created if it does not exist.")
    private static let data = Option<String>(
        required: "--data", parse: .folder, summary: "The folder of the log.")

    static let description = Command(
        "backup", summary: "Copy a log while its sequencer serves.",
        discussion: """
            Copies the log as it is at one moment, then checks every entry of the copy. If it is \
            interrupted before that is done, DESTINATION has no log. Run it \
            on the machine of the log. The sequencer does not wait, and need not run. Keep the \
            printed anchor on another machine: with it, conflux log --verify --expect can later \
            tell whether somebody changed the copy or the log. The log's folder gets a file \
            backed-up, whose time the sequencer reports as a metric. To go back to the copy, use \
            conflux restore. Nodes that have seen more than the copy report it, and reload their \
            stores. Never run two sequencers with copies of one log.
            """,
        parameters: [destination, data, WorkerOptions.json],
        examples: [
            .init(
                "Keep today's log",
                "conflux backup /backups/2026-05-01 --data /var/lib/conflux")
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let target = arguments[destination]
        let file = try failing { () throws(LogError) in
            try SQLiteLogFile(directory: arguments[data])
        }
        defer { file.close() }
        let verification: LogVerification
        do throws(CommandFailure) {
            // A copy with damage is kept, since the log may be no better. One that was not checked is not.
            verification = try file.copy(from: arguments[data], to: target, environment) {
                $0.exitCode != .interrupted
            }
        } catch {
            guard error.exitCode == .interrupted else { throw error }
            throw CommandFailure(
                .interrupted,
                "The backup was interrupted, and \(target) has no log. Run the command again.")
        }
        do throws(SystemFailure) {
            try BackupMark.leave(in: arguments[data])
        } catch {
            environment.diagnostics.note(
                "the backup is complete, but the metric of the last backup does not show it: "
                    + "\(arguments[data]) can't be written: \(error.words)")
        }
        environment.show(verification.fields, "copied to \(target): \(verification.text)")
        return .success
    }
}

extension LogError: CommandError {
    /// The failure for an error of a log on disk.
    package var failure: CommandFailure {
        let exitCode: ExitCode =
            switch code {
            case .notALog: .noInput
            case .unusableFolder, .inUse: .cannotCreate
            default: .logFailed
            }
        return CommandFailure(exitCode, code: code.rawValue, message)
    }
}

extension SQLiteLogFile {
    /// Copies a log, and checks the copy, for a command.
    ///
    /// - Parameters:
    ///   - source: The folder of the log.
    ///   - target: The folder of the copy.
    ///   - anchor: An anchor that the copy must have; nil if none is known.
    ///   - environment: Ends the work.
    ///   - keeps: Whether a copy that failed its check for this reason is kept.
    /// - Returns: What was checked.
    /// - Throws: What is wrong with the copy, or why there is none.
    func copy(
        from source: String, to target: String, expecting anchor: LogAnchor? = nil,
        _ environment: CommandEnvironment, keeps: (CommandFailure) -> Bool
    ) throws(CommandFailure) -> LogVerification {
        var checked: Result<LogVerification, CommandFailure>?
        let progress = LogProgress()
        defer { progress.end() }
        try failing { () throws(LogError) in
            progress.copying(from: source, to: target)
            try copy(to: target) { copy in
                progress.copied()
                let result = Result { () throws(CommandFailure) in
                    try LogVerification(
                        of: copy, expecting: anchor,
                        unless: { environment.interruption.reason != nil },
                        progress: progress.checked)
                }
                checked = result
                if case .failure(let failure) = result { return keeps(failure) }
                return true
            }
        }
        guard let checked else {
            throw CommandFailure(.failed, "The copy was not checked. Run the command again.")
        }
        return try checked.get()
    }
}
