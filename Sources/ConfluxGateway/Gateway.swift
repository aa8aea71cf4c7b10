import ConfluxArguments
import ConfluxMonitoring
import ConfluxNode
import ConfluxVocabulary
@_exported import struct ConfluxWorker.HostedState
import ConfluxWorker
import ConfluxZeroMQ

/// The `main` of a gateway: a process that hosts stores, and serves them to every ZeroMQ socket.
///
/// A gateway of your own is an executable that lists its states:
///
/// ```swift
/// import ConfluxGateway
///
/// await Gateway.main("stock-gateway", version: "2.1.0", states: [HostedState(Stock.self)])
/// ```
///
/// It takes the options of `conflux gateway`. With `--publish`, subscribers get the state of a store and then each change,
/// at one address or, for keys that may observe different stores, at several. With `--ask`, requests read stores and
/// dispatch actions. Its exit codes are those of `conflux help`.
public enum Gateway {
    /// Runs a gateway with this process's command line, and ends the process.
    ///
    /// - Parameters:
    ///   - program: The program's name, for its help and its messages.
    ///   - version: The version of your program; `--version` prints it with that of Conflux.
    ///   - states: The states it can serve. `--store` chooses among their stores; without it, the shared store of each is
    ///     served.
    public static func main(
        _ program: String, version: String? = nil, states: [HostedState]
    ) async -> Never {
        await Worker.main(command(program, knowing: states), version) {
            (arguments, interruption) async throws(UsageError) in
            try await run(
                arguments, version: version ?? ConfluxRelease.version, states: states,
                interruption: interruption)
        }
    }

    /// Describes a gateway's command line.
    ///
    /// - Parameters:
    ///   - name: The name of the command.
    ///   - states: The states it can serve.
    /// - Returns: The description.
    package static func command(_ name: String, knowing states: [HostedState]) -> Command {
        Command(
            name, summary: "Serve stores to every ZeroMQ socket.",
            discussion: """
                A worker that also speaks to sockets that know nothing of Conflux. At --publish, SUB sockets subscribe \
                to a store: they get the state first, then each change. At --ask, REQ and DEALER sockets get states, \
                and dispatch actions; at --http, the same is an API at /api/v1. Every message and every answer is JSON. \
                docs/gateway.md has them all.

                States: \(states.map(\.name).sorted().joined(separator: ", ")).
                """,
            parameters: GatewayOptions.all,
            examples: [
                .init(
                    "Serve a document",
                    "conflux gateway --store document/prefs --publish tcp://127.0.0.1:7410 "
                        + "--ask tcp://127.0.0.1:7411")
            ], runsAlone: true)
    }

    /// Runs a gateway with a parsed command line.
    ///
    /// - Parameters:
    ///   - arguments: The command and its values.
    ///   - version: The program's version, for metrics.
    ///   - states: The states it can serve.
    ///   - stores: The stores, possibly none; nil for those that the command line names.
    ///   - interruption: Ends the gateway.
    /// - Returns: How the process ends.
    /// - Throws: A usage error if a store's state is unknown, or an address is missing, too open, there twice, or for
    ///   none of the stores.
    package static func run(
        _ arguments: Invocation, version: String, states: [HostedState],
        stores: [StoreName]? = nil, interruption: Interruption
    ) async throws(UsageError) -> ExitCode {
        let served: [StoreName]
        if let stores {
            served = stores
        } else {
            served = try arguments.stores(of: states)
        }
        try check(arguments, served)
        let service: GatewayService
        do throws(ZeroMQError) {
            service = try GatewayService(arguments, served, knowing: states)
        } catch {
            throw arguments.usageError("\(error)")
        }
        return try await Worker.run(
            arguments, version: version, states: states, stores: served, service: service,
            interruption: interruption)
    }

    private static func check(
        _ arguments: Invocation, _ stores: [StoreName]
    ) throws(UsageError) {
        let publications = arguments[GatewayOptions.publish]
        let asked = arguments[GatewayOptions.ask]
        guard !publications.isEmpty || asked != nil || arguments[MonitoringOptions.http] != nil
        else {
            throw arguments.usageError(
                "give --publish, --ask, --http, or several of them: without an address there is nothing to serve"
            )
        }
        guard publications.count <= GatewayBounds.publicationsMax else {
            throw arguments.usageError(
                "--publish is given \(publications.count) times; give it \(GatewayBounds.publicationsMax) times at "
                    + "most, or start several gateways")
        }
        for publication in publications where !stores.contains(where: publication.covers) {
            let names = stores.map(\.description).joined(separator: ", ")
            throw arguments.usageError(
                "--publish \(publication) has a pattern for none of the stores that the gateway serves, which are: "
                    + "\(names); correct the pattern, or add a store with --store")
        }
        var taken: Set<Endpoint> = []
        for endpoint in publications.map(\.endpoint) + [asked].compactMap(\.self) {
            try arguments.checkReach(
                of: endpoint, hasKeys: arguments[GatewayOptions.authorized] != nil)
            guard endpoint.port == 0 || taken.insert(endpoint).inserted else {
                throw arguments.usageError(
                    "\(endpoint) is given twice; give each --publish and --ask an address of its own"
                )
            }
        }
    }
}

extension Invocation {
    /// Without keys, anybody who can reach an address may use it. So without keys, only local addresses are accepted.
    ///
    /// - Parameters:
    ///   - address: The address.
    ///   - hasKeys: Whether only keys may connect.
    /// - Throws: A usage error if it is too open.
    func checkReach(of address: Endpoint, hasKeys: Bool) throws(UsageError) {
        guard !hasKeys, !self[GatewayOptions.insecure], !address.isLocal else { return }
        throw usageError(
            "\(address) can be reached from elsewhere; give --curve-secret and --authorized, or let everybody use "
                + "it with --insecure")
    }
}
