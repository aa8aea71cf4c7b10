import ConfluxArguments
import ConfluxGateway
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Synchronization

/// `conflux console`: a gateway with the console alone, for a quick look.
enum ConsoleCommand {
    /// The most stores that are hosted unless they are named. *At the bound* the first ones by name are.
    static let storesMax = 64
    private static let anyPort = "127.0.0.1:0"

    static let description = Command(
        "console", summary: "Watch nodes, stores and entries in a browser.",
        discussion: """
            Runs a gateway that serves the console, and prints its address. Without --store it \
            hosts the stores that the sequencer has and whose state this program knows, at most \
            \(storesMax); it creates none. Without --http it serves at a free port of this \
            machine. The console is read-only without --http-token. docs/console.md describes it.
            """,
        parameters: [
            WorkerOptions.stores, MonitoringOptions.http, MonitoringOptions.httpToken,
        ] + Connection.followingParameters,
        examples: [
            .init("Watch a sequencer", "conflux console --connect tcp://10.0.0.5:7400"),
            .init(
                "Dispatch from the browser, too",
                "conflux console --http 127.0.0.1:7413 --http-token console.token"),
        ])

    static func run(
        _ arguments: Invocation, interruption: Interruption
    ) async throws(UsageError) -> ExitCode {
        let found = Mutex(arguments[WorkerOptions.stores])
        if found.withLock(\.isEmpty) {
            let environment = CommandEnvironment(
                arguments, isJSON: arguments[WorkerOptions.json], lifetime: .limited,
                interruption: interruption)
            let code = await environment.run { environment async throws(CommandFailure) in
                let stores = try await knownStores(environment)
                found.withLock { $0 = stores }
                return .success
            }
            guard code == .success else { return code }
        }
        let stores = found.withLock(\.self)
        guard case .run(let gateway) = try Tool.program.parse(line(arguments, stores)) else {
            preconditionFailure("the line asks for no help")
        }
        return try await Gateway.run(
            gateway, version: ConfluxRelease.version, states: BuiltinStates.hosted, stores: stores,
            interruption: interruption)
    }

    private static func knownStores(
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> [StoreName] {
        let states = Set(BuiltinStates.hosted.map(\.name))
        let all = try await Connection.use(environment) { connection async throws(CommandFailure) in
            try await connection.status().stores.map(\.store)
        }
        let known = all.filter { states.contains($0.state.text) }
        if known.count > storesMax {
            environment.diagnostics.note(
                "\(known.count) stores can be shown; the first \(storesMax) are. Name others with --store."
            )
        }
        return Array(known.prefix(storesMax))
    }

    /// The line of the gateway that does it.
    private static func line(_ arguments: Invocation, _ stores: [StoreName]) -> [String] {
        var line = [
            "gateway", "--connect", arguments[WorkerOptions.connect],
            "--http", arguments[MonitoringOptions.http] ?? anyPort,
            "--timeout", "\(Int(arguments[WorkerOptions.timeout] / .milliseconds(1)))ms",
        ]
        for (name, option) in [
            ("--http-token", MonitoringOptions.httpToken), ("--curve-secret", WorkerOptions.secret),
            ("--server-key", WorkerOptions.serverKey), ("--feed", WorkerOptions.feed),
        ] {
            if let value = arguments[option] { line += [name, value] }
        }
        for store in stores { line += ["--store", store.description] }
        return line + (arguments[WorkerOptions.json] ? ["--json"] : [])
    }
}
