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
/// It takes the options of `conflux gateway`. With `--publish`, subscribers get the state of a store and then each change;
/// with `--ask`, requests read stores and dispatch actions. Its exit codes are those of `conflux help`.
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
    /// - Throws: A usage error if a store's state is unknown, or an address is missing or too open.
    package static func run(
        _ arguments: Invocation, version: String, states: [HostedState],
        stores: [StoreName]? = nil, interruption: Interruption
    ) async throws(UsageError) -> ExitCode {
        try check(arguments)
        let service: GatewayService
        do throws(ZeroMQError) {
            service = try GatewayService(arguments)
        } catch {
            throw arguments.usageError("\(error)")
        }
        return try await Worker.run(
            arguments, version: version, states: states, stores: stores, service: service,
            interruption: interruption)
    }

    private static func check(_ arguments: Invocation) throws(UsageError) {
        let options = [GatewayOptions.publish, GatewayOptions.ask]
        guard (options + [MonitoringOptions.http]).contains(where: { arguments[$0] != nil }) else {
            throw arguments.usageError(
                "give --publish, --ask, --http, or several of them: without an address there is nothing to serve"
            )
        }
        for option in options {
            if let address = arguments[option] {
                try arguments.checkReach(
                    of: address, hasKeys: arguments[GatewayOptions.authorized] != nil)
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
    func checkReach(of address: String, hasKeys: Bool) throws(UsageError) {
        guard !hasKeys, !self[GatewayOptions.insecure] else { return }
        let endpoint: Endpoint
        do throws(ZeroMQError) {
            endpoint = try Endpoint(address)
        } catch {
            throw usageError("\(address) is no address: \(error)")
        }
        guard !endpoint.isLocal else { return }
        throw usageError(
            "\(address) can be reached from elsewhere; give --curve-secret and --authorized, or let everybody use "
                + "it with --insecure")
    }
}
