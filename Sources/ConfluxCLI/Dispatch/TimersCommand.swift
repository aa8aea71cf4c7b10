import Conflux
import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux timers`: lists the timers that the sequencer keeps, or cancels one.
enum TimersCommand {
    private static let target = Operand<Target?>(
        optional: "TARGET", parse: .target,
        summary: """
            Only timers for this store: state/instance, or a state's name for its shared store; or state/* for the stores \
            of a state. With --cancel, the target with which the timer was set.
            """)
    private static let cancel = Option<String?>(
        "--cancel", parse: .timerKey,
        summary: "Cancel the timer that has this key, instead of listing timers.")

    static let description = Command(
        "timers", summary: "List the actions that are dispatched later, or cancel one.",
        discussion: """
            Shows the timers that the log has and that have not fired for the last time: what they are for, and when they \
            fire next. You see timers whose targets you may dispatch to or observe. With --json, there is a line for \
            each.

            With --cancel, the command ends with 0 if the timer was there: it does not fire any more. It ends with 80 if \
            there is none. Then it has fired for the last time, was cancelled, or was never set.
            """,
        parameters: [target, cancel] + Connection.parameters,
        examples: [
            .init("List all timers", "conflux timers"),
            .init("List the timers of one store", "conflux timers document/prefs"),
            .init("Cancel a timer", "conflux timers document/prefs --cancel cleanup"),
        ])

    /// Checks the parameters before anything else is done.
    static func validate(_ arguments: Invocation) throws(UsageError) {
        guard arguments[cancel] != nil, arguments[target] == nil else { return }
        throw arguments.usageError(
            "--cancel needs the target with which the timer was set, too: conflux timers TARGET --cancel KEY"
        )
    }

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        if let name = arguments[cancel], let target = arguments[target] {
            return try await cancel(TimerKey(target: target, name: name), environment)
        }
        let timers = try await Connection.use(environment) {
            connection async throws(CommandFailure) in
            try await list(by: connection).filter {
                arguments[target].map($0.concerns) ?? true
            }
        }
        if environment.isJSON {
            for timer in timers {
                environment.output.print(JSONObject(TimerText.fields(timer)).json)
            }
        } else {
            show(timers, of: arguments[target], environment)
        }
        environment.output.flush()
        return .success
    }

    /// The timers, as they were while the pages were asked for.
    private static func list(
        by connection: Connection
    ) async throws(CommandFailure) -> [TimerStatus] {
        var timers: [TimerStatus] = []
        while true {
            let page = try await connection.timers(behind: timers.last?.number ?? .zero)
            guard !page.isEmpty else { return timers }
            timers += page
        }
    }

    private static func show(
        _ timers: [TimerStatus], of target: Target?, _ environment: CommandEnvironment
    ) {
        guard !timers.isEmpty else {
            environment.output.add("no timers\(target.map { " for \($0)" } ?? "")")
            return
        }
        let table = TextTable(
            ["TIMER", "NEXT", "EVERY", "KEY", "SET BY", "FOR"],
            timers.map { timer in
                TextTable.Row(
                    cells: [
                        timer.number.description, timer.due.iso8601,
                        timer.interval.map(TimerText.words) ?? "-",
                        timer.key.map(TimerText.words) ?? "-", timer.owner?.text ?? "-",
                    ], list: timer.targets.map(\.description))
            })
        let lines = table.lines(columns: 80, environment.output.appearance)
        for line in lines.dropFirst() { environment.output.add(line) }
    }

    private static func cancel(
        _ key: TimerKey, _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> ExitCode {
        let connection = try await Connection.open(environment, as: .member)
        let result = await Result { () async throws(CommandFailure) in
            try await environment.interruption.cancelling { () async throws(CommandFailure) in
                try await cancel(key, by: connection)
            }
        }
        await connection.close()
        let receipt = try result.get()
        environment.show(
            [
                "epoch": receipt.epoch, "key": key.name, "sequence": receipt.sequence,
                "target": key.target.description, "timestamp": Int(receipt.timestamp.rawValue),
            ], "cancelled as entry \(receipt.sequence): \(key.target) \(TimerText.words(key.name))")
        return .success
    }

    private static func cancel(
        _ key: TimerKey, by connection: Connection
    ) async throws(CommandFailure) -> Receipt {
        let handle = connection.core.cancel(key)
        do throws(DispatchError) {
            return try await handle.receipt(within: connection.timeout)
        } catch {
            if (error.reason as? RejectionReason)?.code == .noSuchTimer {
                throw CommandFailure(
                    .rejected, code: "\(RejectionCode.noSuchTimer)",
                    """
                    No timer for \(key.target) has the key \(TimerText.words(key.name)): it has fired for the last time, \
                    was cancelled, or was never set. conflux timers shows those that there are.
                    """)
            }
            if error.code == .timedOut {
                let advice = handle.token.map { ": conflux outcome \($0) tells" } ?? ""
                throw CommandFailure(
                    .timedOut,
                    """
                    No receipt came from \(connection.core.address) within \(connection.timeout). The timer may end or \
                    not\(advice). Run the command again, or see what conflux timers shows.
                    """)
            }
            throw CommandFailure(error)
        }
    }
}

extension TimerStatus {
    /// Whether an action of the timer is for some of the wanted stores.
    fileprivate func concerns(_ wanted: Target) -> Bool {
        targets.contains { EntryText.concerns(wanted, $0) }
    }
}
