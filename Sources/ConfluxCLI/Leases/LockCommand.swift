import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker
import Foundation
import Synchronization

/// `conflux lock`: runs a command while this process holds a lease.
enum LockCommand {
    /// How long a command may take to end after SIGTERM. It is less than the time that a process has after a signal.
    static let graceMax = Duration.seconds(3)
    /// The variable with the number of the claim's entry.
    static let tokenVariable = "CONFLUX_LEASE_TOKEN"

    private static let lease = Operand(
        "NAME", parse: .leaseName, summary: "The lease: a name, or two parts as in orders/17.")
    private static let words = Operand<[String]>(
        rest: "COMMAND", atLeastOne: true, parse: .text,
        summary: "The command and its arguments, after --.")

    static let description = Command(
        "lock", summary: "Run a command while holding a lease.",
        discussion: """
            Waits for the lease, runs the command, releases the lease, and ends with the command's exit code, or \
            with 128 and the signal that ended it. The command has the fencing token in \(tokenVariable): pass it \
            to systems that can refuse a lower token than they have seen.

            If the lease is lost, the command gets SIGTERM, and SIGKILL after a sixteenth of the sequencer's --silence: \
            before the lease passes on, unless somebody released it. Then conflux lock ends with 80. SIGINT and SIGTERM \
            end the command, too; it has three seconds then. If conflux lock itself is killed, the \
            command goes on, and the lease passes to the next in line once the sequencer has heard nothing for as \
            long as its --silence says.
            """,
        parameters: [lease, words, LeaseOptions.within] + Connection.parameters,
        examples: [
            .init("Run a job on one machine at a time", "conflux lock nightly -- ./nightly.sh"),
            .init(
                "Do nothing if another machine does it",
                "conflux lock nightly --within 1s -- ./nightly.sh"),
        ])

    /// Runs the command line.
    ///
    /// - Returns: The exit code of the process: that of the command, if it ran to its end.
    static func run(
        _ invocation: Invocation, interruption: Interruption, output: Int32 = STDOUT_FILENO
    ) async -> Int32 {
        let environment = CommandEnvironment(
            invocation, isJSON: invocation[WorkerOptions.json], lifetime: .limited,
            interruption: interruption, output: output)
        let status = Atomic<Int32>(0)
        let exitCode = await environment.run { environment throws(CommandFailure) in
            status.store(try await runLocked(environment), ordering: .relaxed)
            return .success
        }
        return exitCode == .success ? status.load(ordering: .relaxed) : exitCode.rawValue
    }

    private static func runLocked(
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        try await Connection.use(environment, as: .member) {
            connection async throws(CommandFailure) in
            let (name, words) = (environment.arguments[lease], environment.arguments[words])
            let lease = try await LeaseOptions.take(name, connection, environment)
            let command = try LockedCommand(words, [tokenVariable: "\(lease.token)"])
            let isLost = Atomic(false)
            let watching = Task {
                await lease.waitUntilOver()
                guard !Task.isCancelled else { return }
                isLost.store(true, ordering: .relaxed)
                // By then, no other process has the lease, unless somebody released it.
                command.end(within: min(graceMax, lease.silenceMax / 16))
            }
            let status = await withTaskCancellationHandler {
                await command.ended()
            } onCancel: {
                command.end(within: graceMax)
            }
            watching.cancel()
            await watching.value
            guard !isLost.load(ordering: .relaxed) else {
                throw CommandFailure(
                    .rejected, code: "leaseLost",
                    """
                    The lease \(name) was lost, so \(words[0]) was ended: somebody released it, or the sequencer \
                    could not be reached for too long. conflux leases shows who holds it now.
                    """)
            }
            try? await lease.release(within: .seconds(1))
            return status
        }
    }
}
