import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux log skip`: removes an entry's effect in every process.
enum SkipCommand {
    private static let sequence = Operand(
        "SEQ", parse: .sequence,
        summary: "The number of an action's entry, as storeStopped or conflux log shows it.")

    static let description = Command(
        "skip", summary: "Skip an entry: it has no effect, in every process.",
        discussion: """
            Use it for an action that programs die of, or that no program can apply. The entry \
            stays in the log and changes nothing any more. Stores that stopped before it \
            continue: open ones by themselves, others when you restart their program.

            The skip is rejected (passed) if a replica has applied the action: then stopped \
            replicas get that replica's state. It is also rejected while a live node has not \
            reached the entry yet; ask again.
            """,
        parameters: [sequence] + Connection.parameters,
        examples: [
            .init("Get everyone past entry 1042", "conflux log skip 1042"),
            .init("Look at it first", "conflux log --from 1042 --to 1042"),
        ])

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let sequence = environment.arguments[sequence]
        let search = EntrySearch(sequence)
        let (target, decided) = try await Connection.use(environment, tap: { search.take($0) }) {
            connection async throws(CommandFailure) -> (Target, SequenceNumber) in
            let target = try await Self.target(of: sequence, connection, search)
            do throws(NodeError) {
                let decided = try await connection.core.wait(
                    for: .skipped(sequence, target), patience: connection.timeout)
                return (target, decided)
            } catch {
                throw CommandFailure(deciding: error)
            }
        }
        environment.show(
            ["sequence": decided, "skipped": sequence, "target": "\(target)"],
            "skipped: entry \(sequence) has no effect on \(target) any more")
        return .success
    }

    /// The target of an action.
    private static func target(
        of sequence: SequenceNumber, _ connection: Connection, _ search: EntrySearch
    ) async throws(CommandFailure) -> Target {
        let status = try await connection.status()
        guard (status.floor...max(status.floor, status.last)).contains(sequence) else {
            throw CommandFailure(
                .notFound, code: "noEntry",
                """
                There is no entry \(sequence): the log holds \(status.floor) to \(status.last).
                """)
        }
        try await connection.follow(from: sequence)
        switch try await search.found(within: connection.timeout, at: connection.core.address) {
        case .action(_, let row, _): return row.target
        case .event(let event, _):
            throw CommandFailure(
                .rejected, code: "notAnAction",
                """
                Entry \(sequence) is one of the log's own events (\(event.kind)); only an \
                action can be skipped. conflux log --from \(sequence) shows what is there.
                """)
        }
    }
}

extension CommandFailure {
    /// The failure for a skip that the sequencer did not decide. Any rejection by the sequencer
    /// counts as one.
    fileprivate init(deciding error: NodeError) {
        guard let rejection = error.rejection else {
            self.init(error)
            return
        }
        self.init(
            ExitCode(rejection), code: "\(rejection)",
            error.message)
    }
}

/// Looks for one entry in the delivered commits.
private final class EntrySearch: Sendable {
    private let sequence: SequenceNumber
    private let stream: AsyncStream<LogEntry>
    private let continuation: AsyncStream<LogEntry>.Continuation

    init(_ sequence: SequenceNumber) {
        self.sequence = sequence
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1))
    }

    func take(_ commit: Commit) {
        guard commit.first <= sequence, commit.last >= sequence else { return }
        commit.forEachEntry { if $0 == sequence { continuation.yield($1) } }
        continuation.finish()
    }

    func found(
        within limit: Duration, at address: String
    ) async throws(CommandFailure) -> LogEntry {
        let continuation = continuation
        let timer = Task {
            await Pause.wait(for: limit)
            continuation.finish()
        }
        defer { timer.cancel() }
        for await found in stream { return found }
        throw CommandFailure(
            .timedOut,
            "Entry \(sequence) could not be read from \(address) within \(limit). Ask again.")
    }
}
