import ConfluxArguments
@_exported import ConfluxNode
import ConfluxVocabulary
import Foundation

/// The `main` of a worker: a process that hosts stores.
///
/// A worker of your own is an executable that lists its states:
///
/// ```swift
/// import ConfluxWorker
///
/// await Worker.main(
///     "stock-worker", version: "2.1.0",
///     states: [HostedState(Stock.self), HostedState(CartState.self)])
/// ```
///
/// It takes the options of `conflux worker` (`--connect`, `--name`, `--store` …). It prints a line once
/// all of its stores are current, and then its events. On SIGINT and SIGTERM it leaves cleanly. Its
/// exit codes are those of `conflux help`.
///
/// A worker may have code of its own, which uses the stores that it hosts:
///
/// ```swift
/// await Worker.main("stock-worker", states: [HostedState(Stock.self)]) { node in
///     let stock = try await node.store(Stock.self)
///     for await left in stock.changed(\.left).values where left < 10 {
///         try await stock.dispatch(.add(amount: 100)).receipt()
///     }
/// }
/// ```
///
/// `stock-worker upgrade --check` migrates copies of the states that such stores have now, with the
/// worker's own program, and shows what changes. Run it before you deploy a new program.
public enum Worker {
    /// Runs a worker with this process's command line, and ends the process.
    ///
    /// - Parameters:
    ///   - program: The program's name, for its help and its messages.
    ///   - version: The version of your program. `--version` prints it with that of Conflux:
    ///     `stock-worker 2.1.0 (Conflux 0.2.0)`. Without one, it prints only that of Conflux.
    ///   - states: The states it can host. `--store` chooses among their stores; without it, the
    ///     shared store of each is hosted.
    ///   - body: The program's own code, if it has some. It runs once, as soon as all stores are current, and the worker
    ///     is ready as soon as it has begun. When it returns, the worker goes on hosting. If it throws an error, the
    ///     worker leaves, and ends with the error as its message and the exit code 70. On SIGINT and SIGTERM, and if the
    ///     sequencer ends the node, its task is cancelled. The worker then waits for it, 2 seconds at most, before it
    ///     leaves. So it may still dispatch what it has begun.
    public static func main(
        _ program: String, version: String? = nil, states: [HostedState],
        running body: (@Sendable (Node) async throws -> Void)? = nil
    ) async -> Never {
        let code = body.map { body in
            OwnCode { (node, ready) in
                ready()
                try await body(node)
            }
        }
        await main(program, version, states, code)
    }

    /// Runs a worker whose own code says when it is ready, and ends the process.
    ///
    /// ```swift
    /// await Worker.main("stock-web", states: [HostedState(Stock.self)]) { node, ready in
    ///     let server = try await WebServer.bind(port: 8080, showing: node.store(Stock.self))
    ///     ready()
    ///     try await server.run()
    /// }
    /// ```
    ///
    /// Until then the worker is not ready: it does not print its line, does not tell the service manager, and `/readyz`
    /// gives the reason.
    ///
    /// - Parameters:
    ///   - program: The program's name, for its help and its messages.
    ///   - version: The version of your program.
    ///   - states: The states it can host.
    ///   - body: The program's own code, as of ``main(_:version:states:running:)``. It gets the node, and a function
    ///     that says that it is ready. To return says so, too.
    public static func main(
        _ program: String, version: String? = nil, states: [HostedState],
        serving body:
            @escaping @Sendable (Node, _ ready: @escaping @Sendable () -> Void) async throws -> Void
    ) async -> Never {
        await main(program, version, states, OwnCode(body))
    }

    private static func main(
        _ program: String, _ version: String?, _ states: [HostedState], _ code: OwnCode?
    ) async -> Never {
        let description = command(
            program, knowing: states,
            subcommands: [
                UpgradeCheck.command(
                    knowing: states, of: program, options: WorkerOptions.connecting)
            ])
        await main(description, version) { (arguments, interruption) async throws(UsageError) in
            guard arguments.command != "upgrade" else {
                try UpgradeCheck.validate(arguments, knowing: states)
                let environment = CommandEnvironment(
                    arguments, isJSON: arguments[WorkerOptions.json], lifetime: .limited,
                    interruption: interruption)
                return await environment.run { environment async throws(CommandFailure) in
                    try await UpgradeCheck.run(environment, knowing: states)
                }
            }
            return try await run(
                arguments, version: version ?? ConfluxRelease.version, states: states,
                service: Hosting(arguments), code: code, interruption: interruption)
        }
    }

    /// Runs a program that is a worker, or more than that, and ends the process.
    ///
    /// - Parameters:
    ///   - command: Its command line.
    ///   - version: Its version.
    ///   - run: Runs a parsed command line.
    package static func main(
        _ command: Command, _ version: String?,
        run: (Invocation, Interruption) async throws(UsageError) -> ExitCode
    ) async -> Never {
        let program = Program(
            command, version: fullVersion(version), conventions: .conflux)
        let exitCode: ExitCode
        do throws(UsageError) {
            let variables = try ProcessInput.variables(of: program)
            switch try program.parse(
                try ProcessInput.arguments(of: program), environment: variables)
            {
            case .show(let text): exitCode = StandardOutput.show(text)
            case .run(let invocation):
                Diagnostics.noteUnread(variables, by: invocation)
                exitCode = try await run(invocation, .watchSignals())
            }
        } catch {
            Diagnostics.report(error)
            exitCode = .usage
        }
        exit(exitCode.rawValue)
    }

    /// A program's version, together with the version of Conflux.
    private static func fullVersion(_ version: String?) -> String {
        let conflux = "(Conflux \(ConfluxRelease.version))"
        return version.map { "\($0) \(conflux)" } ?? conflux
    }

    /// Describes a worker's command line.
    ///
    /// - Parameters:
    ///   - name: The name of the command.
    ///   - states: The states it can host.
    ///   - examples: The examples at the end of its help.
    ///   - subcommands: The commands below it.
    /// - Returns: The description.
    package static func command(
        _ name: String, knowing states: [HostedState], examples: [Command.Example] = [],
        subcommands: [Command] = []
    ) -> Command {
        Command(
            name, summary: "Host replicated stores in this process.",
            discussion: """
                Connects to a sequencer, opens the stores, and keeps them current. When all of \
                them are, it prints a line that says ready, then one line for each event. SIGINT \
                and SIGTERM end it cleanly.

                States: \(states.map(\.name).sorted().joined(separator: ", ")).
                """,
            parameters: WorkerOptions.all, examples: examples, subcommands: subcommands,
            runsAlone: true)
    }

    /// Runs a worker with a parsed command line.
    ///
    /// - Parameters:
    ///   - arguments: The command and its values.
    ///   - version: The program's version, for metrics.
    ///   - states: The states it can host.
    ///   - stores: The stores to host, possibly none; nil for those that the command line names.
    ///   - service: What the worker is for.
    ///   - code: The program's own code, if it has some.
    ///   - interruption: Ends the worker.
    /// - Returns: How the process ends.
    /// - Throws: A usage error if a store's state is unknown.
    package static func run(
        _ arguments: Invocation, version: String, states: [HostedState],
        stores: [StoreName]? = nil, service: any WorkerService, code: OwnCode? = nil,
        interruption: Interruption
    ) async throws(UsageError) -> ExitCode {
        let environment = CommandEnvironment(
            arguments, isJSON: arguments[WorkerOptions.json], lifetime: .service,
            interruption: interruption)
        let session = try WorkerSession(
            environment, version: version, states: states, stores: stores, service: service,
            code: code)
        return await environment.run { _ async throws(CommandFailure) in try await session.run() }
    }
}
