import ConfluxNode
import ConfluxWorker

/// One run of `conflux dispatch`: waits for the outcomes in the order of the lines, and reports
/// them.
///
/// If no outcome comes within the timeout, or the process must end, reading stops and the node
/// leaves. So every submitted action gets an outcome, if only that its outcome is unknown. After
/// the timeout the actions are withdrawn first (rule 12), so that their outcomes are known. In a
/// resumable run nothing is withdrawn: the next run could not dispatch a withdrawn action.
struct Dispatching: Sendable {
    /// The outcome of one action.
    private typealias Fate = Result<Receipt, CommandFailure>

    private static let questionsMax = 64
    /// How long to wait for the sequencer's answers to the withdrawals. The command ends within a second after its
    /// timeout.
    private static let withdrawalPatience = Duration.milliseconds(750)
    /// How long to wait for outcomes when the process has to end.
    private static let endingPatience = Duration.seconds(3)
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
            if feed.resumption == nil {
                environment.diagnostics.note(
                    "no outcome within \(connection.timeout); withdrawing the actions that were "
                        + "sent")
                connection.core.leave(timeout: Self.withdrawalPatience, isWithdrawing: true)
            } else {
                connection.core.leave(timeout: .zero)
            }
        }
    }

    func run() async -> ExitCode {
        let feed = feed
        let connection = connection
        environment.interruption.whenFired {
            feed.stop()
            connection.core.leave(timeout: min(connection.timeout, Self.endingPatience))
        }
        let events = connection.core.eventStream
        let ending = Task { await watch(events) }
        feed.start()
        if report.wait == .none {
            await send()
        } else {
            await settle()
        }
        // This ends the stream of events, so that none is missed.
        await connection.close()
        await ending.value
        let exitCode = report.finish(isComplete: feed.isComplete)
        guard exitCode == .success, !feed.isComplete else { return exitCode }
        // Everything that was read succeeded, but not everything was read.
        return watchdog.hasFired ? .timedOut : .nodeRefused
    }

    /// Stops reading when the log has lost entries, since what follows relies on them, and when the session ends
    /// early, which can happen in a resumable run: then the rest can't be sent.
    private func watch(_ events: AsyncStream<NodeEvent>) async {
        var loss: (from: SequenceNumber, through: SequenceNumber)?
        func tellLoss(servedIn epoch: Epoch?) {
            guard let (from, through) = loss else { return }
            loss = nil
            report.lost(
                from: from, through: through, servedIn: epoch,
                isResumable: feed.resumption != nil)
        }
        for await event in events {
            switch event {
            case .historyLost(let from, let through):
                loss = (from, through)
                feed.stop()
            case .reconnected(let epoch), .joined(_, let epoch, _): tellLoss(servedIn: epoch)
            case .heldUp(let message): environment.diagnostics.note("actions wait: \(message)")
            case .sessionForgotten:
                guard feed.resumption != nil else { continue }
                feed.stop()
                report.forgotten()
            case .closed(let message):
                tellLoss(servedIn: nil)
                guard feed.resumption != nil, !feed.isComplete, !feed.isStopped else { continue }
                feed.stop()
                environment.diagnostics.report(
                    CommandFailure(.nodeRefused, code: "closed", message))
            default: break
            }
        }
    }

    // MARK: Without outcomes

    private func send() async {
        var last: (line: Int, handle: DispatchHandle)?
        for await portion in feed.portions {
            for item in portion.items {
                switch item {
                case .resumed(let line): report.resumed(line: line)
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
            report.batchDone(portion.share)
            tellAll(of: portion)
            feed.finished()
        }
        await connection.close()
        guard let last else { return }
        // The node sends in order, so the outcome of the last action tells whether all were sent.
        do throws(DispatchError) {
            try await last.handle.receipt()
        } catch {
            if error.code == .notConnected {
                report.failed(
                    line: last.line,
                    CommandFailure(
                        .timedOut,
                        """
                        The sequencer at \(connection.core.address) did not accept all lines up to \
                        \(last.line) within \(connection.timeout), and it is not known which of them it has. Look at \
                        the log before you dispatch them again; with --resume the command does \
                        that itself.
                        """))
            }
        }
    }

    // MARK: With outcomes

    private func settle() async {
        for await portion in feed.portions {
            var window: [(line: Int, fate: Task<Fate, Never>)] = []
            for item in portion.items {
                switch item {
                case .resumed(let line):
                    await drain(&window, to: 0)
                    report.resumed(line: line)
                case .failed(let line, let failure):
                    await drain(&window, to: 0)
                    report.failed(line: line, failure)
                case .submitted(let line, let handle):
                    let fate = await fate(of: handle)
                    guard report.wait == .applied, case .success = fate else {
                        await drain(&window, to: 0)
                        tell(fate, line)
                        continue
                    }
                    window.append((line, Task { await effect(of: handle) }))
                    await drain(&window, to: Self.questionsMax)
                }
            }
            await drain(&window, to: 0)
            report.batchDone(portion.share)
            tellAll(of: portion)
            feed.finished()
        }
        watchdog.cancel()
    }

    /// Records that the outcomes up to here are printed: the next run with the key does not ask for
    /// them.
    private func tellAll(of portion: DispatchFeed.Portion) {
        guard feed.resumption != nil, portion.lastLine > 0 else { return }
        connection.core.told(through: UInt64(portion.lastLine))
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
            if let receipt = handle.outcome?.receipt { return .success(receipt) }
            // The next line may take a while, so readers get what there is.
            environment.output.flush()
            watchdog.arm()
            defer { watchdog.disarm() }
            return .success(try await handle.receipt())
        } catch {
            return .failure(failure(error, handle.token))
        }
    }

    private func failure(_ error: DispatchError, _ token: DispatchToken?) -> CommandFailure {
        let (timeout, address) = (connection.timeout, connection.core.address)
        let advice =
            token.map { "Run conflux outcome \($0) to find out, before you dispatch it again." }
            ?? "Look at the state before you dispatch it again."
        switch (error.code, watchdog.hasFired) {
        case (.outcomeUnknown, true) where feed.resumption != nil:
            return CommandFailure(
                .timedOut,
                """
                No receipt came from \(address) within \(timeout): the action may be in the log or \
                not. Run the command again with the same key, which dispatches it once.
                """)
        case (.outcomeUnknown, true):
            return CommandFailure(
                .timedOut,
                """
                No receipt came from \(address) within \(timeout), and the sequencer did not confirm \
                the withdrawal: the action may be in the log or not. \(advice)
                """)
        case (.withdrawn, true):
            return CommandFailure(
                .timedOut, code: error.code.rawValue,
                """
                No receipt came from \(address) within \(timeout), so the action was withdrawn: it is \
                not in the log and never will be. Try it again when the sequencer is less busy.
                """)
        case (.notConnected, true):
            return CommandFailure(
                .timedOut, code: "notConnected",
                """
                The sequencer at \(address) accepted nothing within \(timeout), so the action was not \
                sent. Try it again when the sequencer is back.
                """)
        default: return CommandFailure(error)
        }
    }

    /// Asks the processes that host the store for the effect of an action that is in the log.
    private func effect(of handle: DispatchHandle) async -> Fate {
        await Result { () async throws(CommandFailure) in
            try await failing { () async throws(DispatchError) in
                try await handle.effect(within: connection.timeout)
            }
        }
    }
}
