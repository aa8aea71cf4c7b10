import ConfluxArguments
import ConfluxWorker

/// `conflux reload`: asks the sequencer to read its file of authorised keys again.
enum ReloadCommand {
    static let description = Command(
        "reload", summary: "Make the sequencer read its authorised keys again.",
        discussion: """
            Ends the connections of keys that are no longer in the file or whose rights changed. \
            Changed ones reconnect with their new rights. If a line is invalid, the answer names \
            it, and the former keys stay. You need a key with the right to administer all \
            stores. SIGHUP to the sequencer's process does the same.
            """,
        parameters: Connection.parameters,
        examples: [.init("Apply a changed file", "conflux reload")])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let count = try await Connection.use(environment) {
            connection async throws(CommandFailure) in try await connection.reload()
        }
        environment.show(["count": count], "authorised keys: \(count)")
        return .success
    }
}
