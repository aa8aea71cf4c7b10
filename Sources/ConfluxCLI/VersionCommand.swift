import ConfluxArguments
import ConfluxVocabulary
import ConfluxWorker

/// `conflux version`: prints the version, as `--version` does, or as JSON.
enum VersionCommand {
    static let description = Command(
        "version", summary: "Show the version.", parameters: [WorkerOptions.json],
        examples: [.init("Show it to a script", "conflux version --json")])

    static func run(_ environment: CommandEnvironment) -> ExitCode {
        let version = ConfluxRelease.version
        environment.show(["version": version], "\(environment.arguments.path[0]) \(version)")
        return .success
    }
}
