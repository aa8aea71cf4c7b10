import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Foundation
import Synchronization

/// `conflux top`: shows nodes, stores and the newest entries on one screen, and updates it each
/// second.
enum TopCommand {
    static let description = Command(
        "top", summary: "Watch nodes, stores and the newest entries on a terminal.",
        discussion: """
            Shows how many entries a second the log gets, how many actions a second each node \
            dispatches, how far each node's replicas lag, the stores, and the newest entries. \
            Press q to quit. In a pipe, use conflux status --watch --json.
            """,
        parameters: Connection.followingParameters,
        examples: [.init("Watch a sequencer", "conflux top --connect tcp://10.0.0.5:7400")])

    private static let interval = Duration.seconds(1)
    /// The most entries that are kept: more than a screen has rows.
    private static let entriesMax = 200

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let entries = Mutex<[String]>([])
        let printer = EntryPrinter { line in
            entries.withLock { entries in
                entries.append(String(checkedUTF8: line))
                entries.removeFirst(max(0, entries.count - entriesMax))
            }
        }
        try await Connection.use(environment, tap: { printer.take($0) }) {
            connection async throws(CommandFailure) in
            let screen = try Screen()
            defer { screen.end() }
            environment.interruption.whenFired { screen.end() }
            readKeys(environment.interruption)
            try await show(on: screen, environment, connection, printer) {
                entries.withLock { $0 }
            }
        }
        return .success
    }

    /// Updates the screen until the task is cancelled.
    private static func show(
        on screen: Screen, _ environment: CommandEnvironment, _ connection: Connection,
        _ printer: EntryPrinter, entries: () -> [String]
    ) async throws(CommandFailure) {
        // Begins with entries that are in the log already, so that the first screen has some.
        let status = try await connection.status()
        let count = UInt64(min(UInt64(entriesMax), status.last.rawValue))
        let first = max(SequenceNumber(status.last.rawValue - count).next, status.floor)
        printer.begin(from: first, through: nil, owners: [:])
        try await connection.follow(from: first)
        var former: TopView.Look?
        while !Task.isCancelled {
            let look = TopView.Look(status: try await connection.status(), at: .now)
            let view = TopView(
                address: environment.arguments[WorkerOptions.connect], look: look, former: former,
                entries: entries())
            let size = screen.size
            screen.show(
                view.lines(
                    columns: size.columns, rows: size.rows, paint: screen.appearance.paint))
            former = look
            await Pause.wait(for: interval)
        }
    }

    /// Makes the key `q` end the command, like SIGINT.
    private static func readKeys(_ interruption: Interruption) {
        Thread {
            var key: UInt8 = 0
            while read(STDIN_FILENO, &key, 1) == 1 {
                if key == UInt8(ascii: "q") { break }
            }
            interruption.fire(.interrupted)
        }.start()
    }
}
