import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// `conflux dispatch`: sends actions to the log, and reports the outcome of each.
enum DispatchCommand {
    /// What to wait for.
    enum Wait: String, CaseIterable, Sendable {
        case applied
        case committed
        case none
    }

    private static let target = Operand(
        "TARGET", parse: .target,
        summary: """
            The store: state/instance, or a state's name for its shared store. state/* is every \
            store of the state.
            """)
    private static let action = Operand<String?>(
        optional: "ACTION", parse: ValueParser.text.completing(.asked("actions")),
        summary: """
            The action as JSON, or the bare name of an action without fields; - for standard \
            input, one action on each line.
            """)
    private static let file = Option<String?>(
        "--file", parse: .file, summary: "Read actions from a file, one on each line.")
    private static let wait = Option<Wait>(
        "--wait", default: .committed, parse: .choice,
        summary: """
            What to wait for. committed: the action is in the log. applied: the first node that \
            hosts the target has applied or refused it. none: it was sent.
            """)
    private static let schemaVersion = Option<UInt32?>(
        "--schema-version", valueName: "N", parse: .integer(in: 1...UInt32.max),
        summary: """
            The schema version of the actions. A store of an older version does not take them. If \
            omitted, it is the version of the store, or that of a state's oldest store.
            """)
    private static let unchecked = Flag(
        "--unchecked",
        summary: """
            Send actions without checking them against the shapes that the state's programs \
            report. Use it if programs of one schema version have different actions.
            """)
    private static let unchangedSince = Option<StoreVersion?>(
        "--if-unchanged-since", parse: .version,
        summary: """
            Dispatch the action only if the store has not changed since this version: the number that observe prints with \
            the state. For one action to one store.
            """)
    private static let under = Option<StoreName?>(
        "--under", parse: .leaseName,
        summary: """
            Take this lease first, dispatch under it, and release it at the end. If it is lost, the actions that \
            follow are not taken.
            """)
    private static let resume = Option<SessionKey?>(
        "--resume", parse: .sessionKey,
        summary: """
            Continue the run with this key that ended or was killed. Lines that the log has are \
            not dispatched again. The lines must be the same; you may append more.
            """)

    static let description = Command(
        "dispatch", summary: "Dispatch actions to a store, or to every store of a state.",
        discussion: """
            Actions are checked before they are sent: names, fields and kinds of values. A node \
            that hosts a state tells the sequencer the shapes of the state's actions. If no live \
            node has told it, only the JSON is checked. The nodes decide whether an action is \
            refused. A bad line of a stream is reported by its number and does not affect the \
            others. With --json, each line of \
            input gives one line of output, in the same order; empty lines give none.

            If no outcome comes within --timeout, the action is withdrawn, so that you know \
            whether it is in the log. With --resume nothing is withdrawn: run the command again \
            with the same key and the same lines until it ends with 0. Each action is then in the \
            log exactly once, even if a process was killed meanwhile. The sequencer remembers a \
            key for seven days.

            With --after or --at, the action is not dispatched now. The command sets a timer: \
            an entry in the log, by which the sequencer dispatches the action later. It needs no \
            process but the sequencer for that. conflux timers lists timers, and cancels those \
            that have a --key.
            """,
        parameters: [
            target, action, file, wait, unchangedSince, under, LeaseOptions.within, resume,
            schemaVersion, unchecked, WorkerOptions.payloadMax,
        ] + DispatchTiming.parameters + Connection.parameters,
        groups: [.exactlyOne(action, file), DispatchTiming.group, .atMostOne(under, resume)],
        examples: [
            .init("Add one to the shared counter", "conflux dispatch counter increment"),
            .init("Add one to every counter", "conflux dispatch 'counter/*' increment"),
            .init(
                "Change one document, and see whether it was refused",
                #"conflux dispatch document/prefs '{"set":{"at":"/theme","value":"dark"}}' --wait applied"#
            ),
            .init(
                "Change one document only if entry 17 is the last that concerns it",
                #"conflux dispatch document/prefs '{"remove":{"at":"/draft"}}' --if-unchanged-since 17"#
            ),
            .init(
                "Increment the counter each night, until conflux timers counter --cancel nightly",
                "conflux dispatch counter increment --at 2030-01-01T02:00:00Z --every 24h --key nightly"
            ),
            .init(
                "Dispatch a stream while nobody else does so",
                "conflux dispatch counter --file actions.ndjson --under import"),
            .init(
                "Dispatch a stream",
                "conflux dispatch counter --file actions.ndjson --json > receipts.ndjson"),
            .init(
                "Dispatch a stream once, however often this is run",
                "conflux dispatch counter --file 2026-05-01.ndjson --resume 2026-05-01"),
        ])

    /// Checks the parameters before anything else is done.
    static func validate(_ arguments: Invocation) throws(UsageError) {
        let isStream = arguments[action].map { $0 == "-" } ?? true
        let excluded: [(option: String, why: String)?] = [
            arguments[unchangedSince].map { _ in
                (
                    "--if-unchanged-since",
                    "is judged before an action is ordered, and a timer has no condition"
                )
            },
            arguments[resume].map { _ in
                ("--resume", "continues a stream of actions, not of timers")
            },
            arguments[wait] == .applied
                ? (
                    "--wait applied",
                    "is about an action, and all that is known of a timer is that the log has it"
                )
                : nil,
            arguments[under] == nil
                ? nil
                : ("--under", "is about an action that is dispatched while the lease is held"),
        ]
        try DispatchTiming.validate(
            arguments, isStream: isStream, excluding: excluded.compactMap(\.self))
        if arguments[resume] != nil, let text = arguments[action], text != "-" {
            throw arguments.usageError(
                "--resume continues a stream: name a --file, or - for standard input")
        }
        if arguments[LeaseOptions.within] != nil, arguments[under] == nil {
            throw arguments.usageError(
                "--within is how long to wait for a lease: name it by --under")
        }
        if arguments[unchangedSince] != nil {
            guard case .store = arguments[target] else {
                throw arguments.usageError(
                    "--if-unchanged-since is about one store: name state/instance")
            }
            guard let text = arguments[action], text != "-" else {
                throw arguments.usageError(
                    "--if-unchanged-since is for one action: each changes the store for the next")
            }
        }
    }

    static func run(_ environment: CommandEnvironment) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let payloadBytesMax = arguments[WorkerOptions.payloadMax]
        let encoder = ActionEncoder(
            arguments[target], ifUnchangedSince: arguments[unchangedSince],
            payloadBytesMax: payloadBytesMax)
        let report = DispatchReport(
            environment, target: arguments[target], wait: arguments[wait],
            isStream: arguments[action].map { $0 == "-" } ?? true,
            isTimed: DispatchTiming.timing(of: arguments) != nil)
        var input: DispatchFeed.Input
        if let text = arguments[action], text != "-" {
            do throws(CommandFailure) {
                input = .payload(try encoder.payload(Array(text.utf8)))
            } catch {
                report.failed(line: 1, error)
                return report.finish(isComplete: true)
            }
        } else {
            let path = arguments[file] ?? "-"
            input = .lines(try LineReader(path: path, lineBytesMax: encoder.lineBytesMax))
        }
        var settings = NodeSettings()
        settings.payloadBytesMax = payloadBytesMax
        let key = arguments[resume]
        let connection = try await Connection.open(
            environment, as: .member, settings: settings, key: key)
        let result = await Result { [input] () async throws(CommandFailure) in
            try await dispatch(input, encoder, connection, report, environment)
        }
        await connection.close()
        return try result.get()
    }

    private static func dispatch(
        _ input: DispatchFeed.Input, _ encoder: ActionEncoder, _ connection: Connection,
        _ report: DispatchReport, _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        let resumption = arguments[resume] == nil ? nil : await connection.core.resumption()
        guard arguments[resume] == nil || resumption != nil else {
            throw CommandFailure(
                .nodeRefused, "The sequencer ended the session at once. Run the command again.")
        }
        var (input, encoder) = (input, encoder)
        try await encoder.prepare(
            schemaVersion: arguments[schemaVersion], isChecking: !arguments[unchecked]
        ) { (state) async throws(CommandFailure) in
            try await environment.interruption.cancelling { () async throws(CommandFailure) in
                try await connection.status(.shapes(state))
            }
        }
        if case .payload = input, let text = arguments[action] {
            do throws(CommandFailure) {
                input = .payload(try encoder.payload(Array(text.utf8)))
            } catch {
                report.failed(line: 1, error)
                return report.finish(isComplete: true)
            }
        }
        var lease: Lease?
        if let name = arguments[under] {
            lease = try await LeaseOptions.take(name, connection, environment)
        }
        // The lease ends with the session, when all is dispatched.
        let feed = DispatchFeed(
            input, encoder, connection.core, timing: DispatchTiming.timing(of: arguments),
            under: lease, resumption: resumption)
        return await Dispatching(connection, feed, report, environment).run()
    }
}

extension ValueParser where Value == SessionKey {
    /// A session key.
    fileprivate static var sessionKey: ValueParser<SessionKey> {
        ValueParser("KEY", expecting: "a key: 1 to \(SessionKey.bytesMax) bytes of UTF-8") {
            SessionKey($0)
        }
    }
}

extension ValueParser where Value == StoreVersion {
    /// The version of a store.
    fileprivate static var version: ValueParser<StoreVersion> {
        ValueParser("VERSION", expecting: "a version: the number of an entry, such as 17 or 17@512")
        {
            StoreVersion($0)
        }
    }
}
