import ConfluxArguments
import ConfluxMonitoring
import ConfluxNode
import ConfluxVocabulary
import ConfluxWorker
import ConfluxZeroMQ

/// `conflux relay`: passes a sequencer's feed on to many nodes.
package enum Relay {
    private static let feed = Option<[String]>(
        repeated: "--feed", valueName: "ADDRESS", atLeastOne: true, parse: .text,
        summary: """
            The feed to pass on: a sequencer's, as its ready line shows it, or that of another relay. If there are \
            several, separated by commas, they are tried in turn.
            """)
    private static let bind = Option(
        "--bind", valueName: "ADDRESS", default: "tcp://127.0.0.1:7420", parse: .text,
        summary: "Where nodes connect: tcp://HOST:PORT or ipc://PATH. Port 0 is a free port.")
    private static let secret = Option<String?>(
        "--curve-secret", valueName: "FILE", parse: .text,
        summary: """
            The sequencer's own secret key: to nodes, a relay is a part of the sequencer. Needs --authorized.
            """)
    private static let authorized = Option<String?>(
        "--authorized", valueName: "FILE", parse: .text,
        summary: """
            The sequencer's file of authorised keys. Those that may observe everything may connect. On SIGHUP the \
            relay reads the file again.
            """)

    /// The command's description.
    package static let description = Command(
        "relay", summary: "Pass a sequencer's feed on to many nodes.",
        discussion: """
            Takes the feed once, and sends it to every node that connects here, so that the sequencer need not. It \
            listens only while the feed works; otherwise nodes go on with the sequencer's own feed. Nodes take \
            --feed with this address, or find it by themselves if the sequencer has --relay. docs/relay.md has more.
            """,
        parameters: [
            feed, bind, secret, authorized, GatewayOptions.insecure, MonitoringOptions.http,
            MonitoringOptions.httpToken, EventLevel.option, WorkerOptions.json,
        ],
        examples: [
            .init(
                "Pass a sequencer's feed on",
                "conflux relay --feed tcp://127.0.0.1:7401 --bind tcp://127.0.0.1:7420")
        ])

    /// The most messages that wait for the relay's thread. Not reached: signals and the watchdog send them.
    private static let mailboxMax = 1_024

    /// Runs a relay with a parsed command line.
    ///
    /// - Parameters:
    ///   - arguments: The command and its values.
    ///   - version: The program's version, for metrics.
    ///   - interruption: Ends the relay.
    /// - Returns: How the process ends.
    /// - Throws: A usage error if an address is invalid or too open.
    package static func run(
        _ arguments: Invocation, version: String, interruption: Interruption
    ) async throws(UsageError) -> ExitCode {
        let place: Endpoint
        var feeds: [Endpoint] = []
        do throws(ZeroMQError) {
            place = try Endpoint(arguments[bind])
            feeds = try Endpoint.list(arguments[feed].joined(separator: ","))
            for feed in feeds { try feed.requireConnectable() }
        } catch {
            throw arguments.usageError("\(error.message)")
        }
        try arguments.checkReach(of: place, hasKeys: arguments[authorized] != nil)
        let environment = CommandEnvironment(
            arguments, isJSON: arguments[WorkerOptions.json], lifetime: .service,
            interruption: interruption)
        return await environment.run { _ async throws(CommandFailure) in
            try await serve(feeds, version, environment)
        }
    }

    private static func serve(
        _ feeds: [Endpoint], _ version: String, _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> ExitCode {
        let arguments = environment.arguments
        guard (arguments[secret] == nil) == (arguments[authorized] == nil) else {
            throw CommandFailure(
                .usage, code: "usage",
                "--curve-secret and --authorized go together: who the relay is, and who may connect."
            )
        }
        let keys = try GatewayKeys(secret: arguments[secret], authorized: arguments[authorized])
        let monitoring = try MonitoringOptions(arguments)
        let manager = try ServiceManager.find(environment.diagnostics)
        defer { manager?.stopping() }
        let (reports, continuation) = AsyncStream.makeStream(of: RelayThread.Report.self)
        let place: String
        let mailbox: Mailbox<RelayThread.Message>
        let thread: NamedThread
        do {
            let waker = try Waker()
            mailbox = Mailbox(capacity: mailboxMax, waker: waker)
            let relay = try RelayThread(
                feeds, at: arguments[bind], mailbox: mailbox, waker: waker, keys: keys
            ) { continuation.yield($0) }
            place = relay.address
            thread = try NamedThread("conflux-relay") {
                relay.run()
                continuation.finish()
            }
        } catch let error as LibraryFailure {
            throw error.failure
        } catch {
            throw CommandFailure(.failed, "\(error)")
        }
        defer {
            mailbox.post(.stop)
            thread.join()
        }
        if let path = arguments[authorized] {
            environment.rereadKeys(path) { mailbox.post(.keys($0)) }
        }
        environment.interruption.whenFired {
            manager?.stopping()
            mailbox.post(.stop)
        }
        var telling = RelayTelling(environment, at: place)
        let server = try monitoring?.serve(telling.monitored(version))
        telling.http = server?.address
        for await report in reports {
            if telling.tell(report) {
                manager?.ready { passed in mailbox.post(.probe(passed)) }
            }
        }
        return withExtendedLifetime(server) {
            environment.announce("stopped", text: "stopped")
            return .success
        }
    }
}
