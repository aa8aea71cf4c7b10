import ConfluxArguments
import ConfluxGateway
import ConfluxNode
import ConfluxVocabulary
import ConfluxWorker
import Foundation

/// The program `conflux`: parses the command line and runs a command.
enum Tool {
    static let program = Program(
        Command(
            "conflux",
            summary: "Application state that is the same in every process.",
            discussion: """
                A sequencer decides one order of actions; workers apply them to the stores that \
                they host. Results go to standard output, everything else to standard error.
                """,
            examples: [
                .init("Keep a log, and serve it", "conflux sequencer --data ./log"),
                .init(
                    "Host two stores",
                    "conflux worker --name alpha --store counter --store document/prefs"),
                .init("Dispatch an action", "conflux dispatch counter increment"),
                .init("See the result, in every worker", "conflux observe counter"),
                .init("See who is there, and which stores", "conflux status"),
            ],
            subcommands: [
                SequencerCommand.description,
                Worker.command("worker", knowing: BuiltinStates.hosted, examples: workerExamples),
                Gateway.command("gateway", knowing: BuiltinStates.hosted), Relay.description,
                DispatchCommand.description, ActionsCommand.description, OutcomeCommand.description,
                TimersCommand.description,
                ObserveCommand.description, DropCommand.description,
                FreezeCommand.freeze, FreezeCommand.thaw, UpgradeCommand.description,
                LogCommand.description,
                LeasesCommand.description, LockCommand.description,
                StatusCommand.description, ListCommands.nodes, ListCommands.stores,
                PingCommand.description, TopCommand.description, ConsoleCommand.description,
                BackupCommand.description, ForkCommand.description,
                RestoreCommand.description, MigrateCommand.description,
                KeygenCommand.description, ContextCommand.description, ReloadCommand.description,
                HandoverCommand.description,
                BenchCommand.description, VersionCommand.description,
            ]), version: ConfluxRelease.version, conventions: conventions)

    private static let conventions = {
        var all = Conventions.conflux
        all.environment.append(
            .init("XDG_CONFIG_HOME, HOME", "The folder of the contexts: see FILES."))
        all.files = [
            .init(
                "$XDG_CONFIG_HOME/conflux/contexts.json",
                """
                The contexts, as conflux context makes them. Without XDG_CONFIG_HOME, the folder is \
                $HOME/.config. A sequencer, a worker, a gateway and a relay do not read it.
                """)
        ]
        return all
    }()

    private static let workerExamples = [
        Command.Example("Host a counter", "conflux worker --name alpha --store counter"),
        Command.Example(
            "Host two documents of a sequencer elsewhere",
            "conflux worker --connect tcp://10.0.0.5:7400 --name beta "
                + "--store document --store document/prefs"),
    ]

    /// Runs this process's command line.
    ///
    /// - Returns: The exit code of the process.
    static func run() async -> Int32 {
        do throws(UsageError) {
            let arguments = try ProcessInput.arguments(of: program)
            if arguments.first == Program.completeWord {
                let offer = program.completions(of: Array(arguments.dropFirst()))
                let names = await CompletionNames.names(offer, ProcessInput.variables)
                return StandardOutput.show(offer.text(with: names)).rawValue
            }
            let variables = try ProcessInput.variables(of: program)
            var outcome = try program.parse(arguments, environment: variables)
            if case .run(let invocation) = outcome, invocation.describes(ContextCommand.option) {
                var all = variables
                do throws(CommandFailure) {
                    all = try ContextFile(variables).adding(
                        invocation[ContextCommand.option], to: variables)
                } catch {
                    let diagnostics = Diagnostics(
                        program: program.root.name, isJSON: invocation[WorkerOptions.json])
                    // Only a command that names a context, or has no address, needs the contexts.
                    guard invocation[ContextCommand.option] == nil,
                        invocation.source(of: WorkerOptions.connect) != .absent
                    else {
                        diagnostics.report(error)
                        return error.exitCode.rawValue
                    }
                    diagnostics.note("no context is used: \(error.message)")
                }
                outcome = try program.parse(arguments, environment: all)
            }
            if case .run(let invocation) = outcome {
                Diagnostics.noteUnread(variables, by: invocation)
            }
            switch outcome {
            case .show(let text): return StandardOutput.show(text).rawValue
            // Its exit code is that of another program.
            case .run(let invocation) where invocation.command == "lock":
                return await LockCommand.run(invocation, interruption: .watchSignals())
            case .run(let invocation):
                return try await run(invocation, interruption: .watchSignals()).rawValue
            }
        } catch {
            // If the line can't be parsed, look for the flag itself to find out whether it asks for
            // JSON.
            let isJSON =
                ProcessInput.hasArgument("--json") || ProcessInput.hasArgument("-j")
                || ProcessInput.variables["CONFLUX_JSON"].flatMap(Flag.truth(of:)) == true
            Diagnostics.report(error, isJSON: isJSON)
            return ExitCode.usage.rawValue
        }
    }

    /// Runs a parsed command line.
    ///
    /// - Parameters:
    ///   - invocation: The command and its values.
    ///   - interruption: Ends the command early.
    ///   - output: The descriptor for the results.
    /// - Returns: The exit code of the process.
    /// - Throws: ``UsageError`` for an error that only the command itself can detect.
    static func run(
        _ invocation: Invocation, interruption: Interruption, output: Int32 = STDOUT_FILENO
    ) async throws(UsageError) -> ExitCode {
        let command: (CommandEnvironment) async throws(CommandFailure) -> ExitCode
        switch invocation.command {
        case "worker":
            return try await Worker.run(
                invocation, version: ConfluxRelease.version, states: BuiltinStates.hosted,
                service: Hosting(invocation), interruption: interruption)
        case "gateway":
            return try await Gateway.run(
                invocation, version: ConfluxRelease.version, states: BuiltinStates.hosted,
                interruption: interruption)
        case "console": return try await ConsoleCommand.run(invocation, interruption: interruption)
        case "relay":
            return try await Relay.run(
                invocation, version: ConfluxRelease.version, interruption: interruption)
        case "sequencer": command = SequencerCommand.run
        case "dispatch":
            try DispatchCommand.validate(invocation)
            command = DispatchCommand.run
        case "timers":
            try TimersCommand.validate(invocation)
            command = TimersCommand.run
        case "observe":
            try ObserveCommand.validate(invocation)
            command = ObserveCommand.run
        case "drop": command = DropCommand.run
        case "reload": command = ReloadCommand.run
        case "handover": command = HandoverCommand.run
        case "outcome": command = OutcomeCommand.run
        case "keygen": command = KeygenCommand.run
        case "backup": command = BackupCommand.run
        case "fork": command = ForkCommand.run
        case "bench":
            try BenchCommand.validate(invocation)
            command = BenchCommand.run
        case "version": command = VersionCommand.run
        case "actions": command = ActionsCommand.run
        case "nodes", "stores": command = ListCommands.run
        case "ping": command = PingCommand.run
        case "leases": command = LeasesCommand.run
        case "freeze", "thaw": command = FreezeCommand.run
        case "context", "context list", "context set", "context use", "context show",
            "context remove":
            command = ContextCommand.run
        case "top": command = TopCommand.run
        case "log skip": command = SkipCommand.run
        case "log export":
            try ExportCommand.validate(invocation)
            command = ExportCommand.run
        case "restore": command = RestoreCommand.run
        case "migrate": command = MigrateCommand.run
        case "upgrade":
            try UpgradeCommand.validate(invocation)
            command = UpgradeCommand.run
        case "log":
            try LogCommand.validate(invocation)
            command = LogCommand.run
        default: command = StatusCommand.run
        }
        let environment = CommandEnvironment(
            invocation, isJSON: invocation[WorkerOptions.json],
            lifetime: lifetime(of: invocation), interruption: interruption, output: output)
        return await environment.run(command)
    }

    private static func lifetime(of invocation: Invocation) -> CommandEnvironment.Lifetime {
        switch invocation.command {
        case "sequencer": .service
        case "top": .following
        case "observe": invocation[ObserveCommand.follow] ? .following : .limited
        case "log": invocation[LogCommand.follow] ? .following : .limited
        case "status": invocation[StatusCommand.watch] ? .following : .limited
        default: .limited
        }
    }
}
