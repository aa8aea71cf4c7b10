import ConfluxNode
import ConfluxProtocol
import ConfluxWorker
import Dispatch
import Synchronization

/// One run of `conflux dispatch`: waits for the outcomes in the order of the lines, and reports
/// them.
///
/// Where no outcome comes within the timeout, or the process is to end, nothing more is read and
/// the node leaves: so every action that was submitted gets an outcome, and an honest one.
struct Dispatching: Sendable {
    /// How one action ended.
    private typealias Fate = Result<Receipt, CommandFailure>

    private static let questionsMax = 64
    private let connection: Connection
    private let feed: DispatchFeed
    private let report: DispatchReport
    private let environment: CommandEnvironment
    private let watchdog: Watchdog

    init(
        _ connection: Connection, _ feed: DispatchFeed, _ report: DispatchReport,
        _ environment: CommandEnvironment
    ) {
        self.connection = connection
        self.feed = feed
        self.report = report
        self.environment = environment
        watchdog = Watchdog(connection.timeout) {
            feed.stop()
            connection.core.leave(timeout: .zero)
        }
    }

    func run() async -> ExitCode {
        let feed = feed
        let connection = connection
        environment.interruption.whenFired {
            feed.stop()
            connection.core.leave(timeout: connection.timeout)
        }
        feed.start()
        if report.wait == .none {
            await send()
        } else {
            await settle()
        }
        return report.finish(isComplete: feed.isComplete)
    }

    // MARK: Without outcomes

    private func send() async {
        var last: (line: Int, handle: DispatchHandle)?
        for await batch in feed.items {
            for item in batch {
                switch item {
                case .submitted(let line, let handle):
                    if case .failed(let error)? = handle.outcome {
                        report.failed(line: line, CommandFailure(error))
                    } else {
                        last = (line, handle)
                        report.sent()
                    }
                case .failed(let line, let failure): report.failed(line: line, failure)
                }
            }
            report.batchDone()
            feed.finished()
        }
        await connection.close()
        guard let last else { return }
        // The node sends in order: what became of the last says whether all were sent.
        do throws(DispatchError) {
            try await last.handle.receipt()
        } catch {
            if error.code == .notConnected {
                report.failed(
                    line: last.line,
                    CommandFailure(
                        .timedOut,
                        """
                        The sequencer did not take everything within \(connection.timeout), up to \
                        and with line \(last.line): how much was sent is not known.
                        """))
            }
        }
    }

    // MARK: With outcomes

    private func settle() async {
        for await batch in feed.items {
            var window: [(line: Int, fate: Task<Fate, Never>)] = []
            for item in batch {
                switch item {
                case .failed(let line, let failure):
                    await drain(&window, to: 0)
                    report.failed(line: line, failure)
                case .submitted(let line, let handle):
                    let fate = await fate(of: handle)
                    guard report.wait == .applied, case .success(let receipt) = fate else {
                        await drain(&window, to: 0)
                        tell(fate, line)
                        continue
                    }
                    window.append((line, Task { await effect(of: receipt) }))
                    await drain(&window, to: Self.questionsMax)
                }
            }
            await drain(&window, to: 0)
            report.batchDone()
            feed.finished()
        }
        watchdog.cancel()
    }

    private func drain(
        _ window: inout [(line: Int, fate: Task<Fate, Never>)], to count: Int
    ) async {
        while window.count > count {
            let next = window.removeFirst()
            tell(await next.fate.value, next.line)
        }
    }

    private func tell(_ fate: Fate, _ line: Int) {
        switch fate {
        case .success(let receipt): report.succeeded(receipt)
        case .failure(let failure): report.failed(line: line, failure)
        }
    }

    private func fate(of handle: DispatchHandle) async -> Fate {
        do throws(DispatchError) {
            if case .committed(let receipt)? = handle.outcome { return .success(receipt) }
            // Nothing follows at once: whoever reads sees what there is.
            environment.output.flush()
            watchdog.arm()
            defer { watchdog.disarm() }
            return .success(try await handle.receipt())
        } catch {
            return .failure(failure(error))
        }
    }

    private func failure(_ error: DispatchError) -> CommandFailure {
        let timeout = connection.timeout
        switch (error.code, watchdog.hasFired) {
        case (.outcomeUnknown, true):
            return CommandFailure(
                .timedOut,
                """
                No receipt came within \(timeout): the action may be in the log or not. Look at \
                the state before you dispatch it again.
                """)
        case (.notConnected, true):
            return CommandFailure(
                .timedOut, code: "notConnected",
                """
                The sequencer took nothing within \(timeout), so the action was not sent. Try it \
                again when the sequencer is back.
                """)
        default: return CommandFailure(error)
        }
    }

    /// What the first hosting node made of an entry.
    private func effect(of receipt: Receipt) async -> Fate {
        do throws(NodeError) {
            let answer = try await connection.core.ask(
                .applied(receipt.sequence, report.target), patience: connection.timeout)
            guard case .refused(let message) = answer.body else { return .success(receipt) }
            return .failure(
                CommandFailure(
                    .refused,
                    "Entry \(receipt.sequence) was refused and changed nothing: \(message)"))
        } catch {
            let exitCode: ExitCode = error.code == .timedOut ? .timedOut : .unknownOutcome
            return .failure(
                CommandFailure(
                    exitCode, code: exitCode == .timedOut ? nil : "effectUnknown",
                    """
                    The action is in the log as entry \(receipt.sequence); whether it was refused \
                    is not known: \(error.message)
                    """))
        }
    }
}

/// Fires once when something that is waited for takes too long.
private final class Watchdog: Sendable {
    private let timeout: Duration
    // Dispatch sources may be used from any thread; made once.
    private nonisolated(unsafe) let timer: any DispatchSourceTimer
    private let fired = Atomic(false)

    init(_ timeout: Duration, whenFired: @escaping @Sendable () -> Void) {
        self.timeout = timeout
        timer = DispatchSource.makeTimerSource(queue: .global())
        timer.setEventHandler { [weak self] in
            guard let self, !fired.exchange(true, ordering: .acquiringAndReleasing) else { return }
            whenFired()
        }
        timer.schedule(deadline: .distantFuture)
        timer.resume()
    }

    deinit {
        timer.cancel()
    }

    var hasFired: Bool { fired.load(ordering: .acquiring) }

    func arm() {
        let nanoseconds = Int(clamping: Int64(timeout / .nanoseconds(1)))
        timer.schedule(deadline: .now() + .nanoseconds(nanoseconds))
    }

    func disarm() {
        timer.schedule(deadline: .distantFuture)
    }

    func cancel() {
        timer.cancel()
    }
}
