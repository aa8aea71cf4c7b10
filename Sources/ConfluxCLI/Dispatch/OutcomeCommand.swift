import ConfluxArguments
import ConfluxNode
import ConfluxWorker

/// `conflux outcome`: tells what became of an action that was dispatched before.
enum OutcomeCommand {
    private static let token = Operand(
        "TOKEN",
        parse: ValueParser(
            "TOKEN", expecting: "a token, as conflux dispatch or DispatchHandle.token gives it"
        ) { DispatchToken($0) },
        summary: "The token of the action: a dispatch that times out prints it.")

    static let description = Command(
        "outcome", summary: "Tell whether an action got into the log.",
        discussion: """
            The command reads the log from the token's place on. It prints the action's place in \
            the log, or ends with 80 if the action is not in the log and never will be. It ends \
            with 82 if the log no longer tells, and with 83 if that is not decided within the \
            timeout. Whether a store refused the action is another matter.
            """,
        parameters: [token] + Connection.parameters,
        examples: [
            .init(
                "Ask after a dispatch that timed out",
                "conflux outcome 3:7-17@748325-00000000000000010000000000000002")
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let token = environment.arguments[token]
        let receipt = try await Connection.use(environment) {
            connection async throws(CommandFailure) in
            try await failing { () async throws(DispatchError) in
                try await connection.core.outcome(of: token, within: connection.timeout)
            }
        }
        environment.show(
            [
                "epoch": receipt.epoch, "sequence": receipt.sequence,
                "timestamp": Int(receipt.timestamp.rawValue),
            ], "in the log as entry \(receipt.sequence)")
        return .success
    }
}
