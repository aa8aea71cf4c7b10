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
            dispatches, how far each node's replicas lag, how many actions a second each store gets, \
            and the newest entries. Press ? for the keys, and q to quit. In a pipe, use conflux \
            status --watch --json.
            """,
        parameters: Connection.followingParameters,
        examples: [.init("Watch a sequencer", "conflux top --connect tcp://10.0.0.5:7400")])

    private static let interval = Duration.seconds(1)
    /// The most entries that are kept: more than a screen has rows.
    private static let entriesMax = 200

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let entries = Mutex<[String]>([])
        let counts = ActionCounts()
        let printer = EntryPrinter { line in
            entries.withLock { entries in
                entries.append(String(checkedUTF8: line))
                entries.removeFirst(max(0, entries.count - entriesMax))
            }
        }
        let tap: @Sendable (Commit) -> Void = { commit in
            counts.note(commit)
            printer.take(commit)
        }
        try await Connection.use(environment, tap: tap) {
            connection async throws(CommandFailure) in
            let screen = try Screen()
            defer { screen.end() }
            environment.interruption.whenFired { screen.end() }
            let shown = ShownView(on: screen)
            readKeys(shown, environment.interruption)
            try await show(on: shown, environment, connection, printer, counts) {
                entries.withLock { $0 }
            }
        }
        return .success
    }

    /// Updates the screen until the task is cancelled.
    private static func show(
        on shown: ShownView, _ environment: CommandEnvironment, _ connection: Connection,
        _ printer: EntryPrinter, _ counts: ActionCounts, entries: () -> [String]
    ) async throws(CommandFailure) {
        // Begins with entries that are in the log already, so that the first screen has some.
        let status = try await connection.status()
        let count = UInt64(min(UInt64(entriesMax), status.last.rawValue))
        let first = max(SequenceNumber(status.last.rawValue - count).next, status.floor)
        printer.begin(from: first, through: nil, owners: [:])
        try await connection.follow(from: first)
        var former: TopView.Look?
        while !Task.isCancelled {
            let asked = ContinuousClock.now
            let status = try await connection.status()
            let look = TopView.Look(
                status: status, at: .now, counts: counts.present.targets,
                latency: ContinuousClock.now - asked)
            shown.show(
                TopView(
                    address: environment.arguments[WorkerOptions.connect], look: look,
                    former: former, entries: entries()))
            former = look
            await Pause.wait(for: interval)
        }
    }

    /// Gives the keys to the view. The key `q` ends the command, like SIGINT.
    private static func readKeys(_ shown: ShownView, _ interruption: Interruption) {
        Thread {
            var bytes = [UInt8](repeating: 0, count: 64)
            while case let count = read(STDIN_FILENO, &bytes, bytes.count), count > 0 {
                let isOver = TopChoice.keys(in: Array(bytes[..<count])).contains { shown.take($0) }
                if isOver { break }
            }
            interruption.fire(.interrupted)
        }.start()
    }
}

/// What the screen shows, as the keys have chosen. Safe on any thread.
private final class ShownView: Sendable {
    private let screen: Screen
    private let content = Mutex<(view: TopView?, choice: TopChoice)>((nil, TopChoice()))

    init(on screen: Screen) { self.screen = screen }

    func show(_ view: TopView) {
        content.withLock { content in
            content.view = view
            draw(content)
        }
    }

    /// - Returns: Whether the command ends.
    func take(_ key: TopChoice.Key) -> Bool {
        content.withLock { content in
            let isOver = content.choice.take(key)
            draw(content)
            return isOver
        }
    }

    private func draw(_ content: (view: TopView?, choice: TopChoice)) {
        guard var view = content.view else { return }
        view.choice = content.choice
        let size = screen.size
        screen.show(
            view.lines(columns: size.columns, rows: size.rows, paint: screen.appearance.paint))
    }
}
