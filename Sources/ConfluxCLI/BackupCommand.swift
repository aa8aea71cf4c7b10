import ConfluxArguments
import ConfluxLog
import ConfluxNode
import ConfluxWorker

/// `conflux backup`: a copy of a log, while its sequencer goes on.
enum BackupCommand {
    private static let destination = Operand(
        "DESTINATION", parse: .folder,
        summary: "A folder without a log; it is made if there is none.")
    private static let data = Option<String>(
        required: "--data", parse: .folder, summary: "The folder of the log.")

    static let description = Command(
        "backup", summary: "Copy a log, while its sequencer goes on.",
        discussion: """
            The copy is the log as it is at one moment; then every entry of it is checked. It is made \
            beside the sequencer, on the same machine, which neither waits nor has to be there. Keep the \
            anchor that is printed on another machine: conflux log --verify --expect tells later whether \
            the copy, or the log, was changed. To go back to it, stop the sequencer and start one with \
            --data DESTINATION: nodes that have seen more than the copy notice, say so, and load their \
            stores anew. Never run two sequencers with copies of one log.
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
        do throws(LogError) {
            let file = try SQLiteLogFile(directory: arguments[data])
            defer { file.close() }
            try file.copy(to: target)
        } catch {
            throw CommandFailure(error)
        }
        let verification = try LogCommand.verify(target, environment)
        if environment.isJSON {
            environment.output.print(verification.json)
        } else {
            environment.output.add("copied to \(target): \(verification.text)")
        }
        return .success
    }
}

extension CommandFailure {
    /// What a log on disk could not do.
    init(_ error: LogError) {
        let exitCode: ExitCode =
            switch error.code {
            case .notALog: .noInput
            case .unusableFolder, .inUse: .cannotCreate
            default: .logFailed
            }
        self.init(exitCode, code: error.code.rawValue, error.message)
    }
}
