import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux handover`: asks the serving sequencer to hand over to a standby.
enum HandoverCommand {
    private static let successor = Option<String?>(
        "--to", valueName: "ADDRESS", parse: .text,
        summary: """
            The address of the one that takes over, as conflux status shows it. If omitted, the \
            one that is furthest in the log.
            """)

    static let description = Command(
        "handover", summary: "Make another sequencer take over.",
        discussion: """
            Several sequencers can share one log on etcd. The serving one commits what it has \
            admitted, sends the receipts, and names its successor, which takes over at once. \
            Nodes find the successor by themselves. The former one stands by. You need a key with \
            the right to administer all stores.

            The command ends when the successor serves.
            """,
        parameters: [successor] + Connection.parameters,
        examples: [
            .init("Free a machine for maintenance", "conflux handover"),
            .init("Choose who takes over", "conflux handover --to tcp://10.0.0.6:7400"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let wished = environment.arguments[successor]
        let (chosen, epoch) = try await Connection.use(environment) {
            connection async throws(CommandFailure) in
            let events = connection.core.eventStream
            let chosen = try await connection.handOver(to: wished)
            let epoch = try await connection.nextTerm(events)
            let serving = try await connection.sequencers().first(where: \.isServing)?.address
            guard serving == chosen else {
                throw CommandFailure(
                    .failed,
                    "\(chosen) did not take over in time; \(serving ?? "another sequencer") serves, epoch "
                        + "\(epoch). Look at conflux status, and hand over again.")
            }
            return (chosen, epoch)
        }
        environment.show(["epoch": epoch, "to": chosen], "\(chosen) serves, epoch \(epoch)")
        return .success
    }
}
