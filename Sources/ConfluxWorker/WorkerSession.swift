import ConfluxArguments
import ConfluxMonitoring
import ConfluxNode

/// One run of a worker: it connects, opens its stores, begins the program's own code, reports that it is ready, serves,
/// reports events, and leaves when it is asked to.
struct WorkerSession: Sendable {
    let environment: CommandEnvironment
    let version: String
    let states: [HostedState]
    let address: String
    let name: Name?
    let stores: [StoreName]
    let service: any WorkerService
    let code: OwnCode?

    /// How long a worker that ends waits for outcomes.
    private static let closeTimeout = Duration.seconds(2)

    init(
        _ environment: CommandEnvironment, version: String, states: [HostedState],
        stores chosen: [StoreName]?, service: any WorkerService, code: OwnCode?
    ) throws(UsageError) {
        let arguments = environment.arguments
        self.environment = environment
        self.version = version
        self.states = states
        self.service = service
        self.code = code
        address = arguments[WorkerOptions.connect]
        name = arguments[WorkerOptions.name]
        if let chosen {
            stores = chosen
        } else {
            stores = try arguments.stores(of: states)
        }
    }

    func run() async throws(CommandFailure) -> ExitCode {
        var settings = NodeSettings(name: name)
        settings.connectTimeout = environment.arguments[WorkerOptions.timeout]
        settings.feeds = WorkerOptions.feeds(environment.arguments)
        settings.closeTimeout = Self.closeTimeout
        settings.payloadBytesMax = environment.arguments[WorkerOptions.payloadMax]
        settings.upgrades = environment.arguments[WorkerOptions.upgrades].policy
        settings.crashJournal = environment.arguments[WorkerOptions.journal]
        defer { service.end() }
        try service.prepare(&settings, in: environment)
        let manager = try ServiceManager.find(environment.diagnostics)
        defer { manager?.stopping() }
        let monitoring = try MonitoringOptions(environment.arguments)
        let node = try await connect(settings)
        let (run, end) = AsyncStream.makeStream(of: Void.self)
        let stop: @Sendable () -> Void = { [code] in
            code?.cancel()
            end.finish()
        }
        let (telling, events) = (
            NodeTelling(environment: environment, address: address), node.events
        )
        let printing = Task {
            defer { stop() }
            return await telling.run(events)
        }
        environment.interruption.whenFired {
            manager?.stopping()
            stop()
        }
        // Keeps the stores and the server until the node is closed.
        let hosting = await Result { () async throws(CommandFailure) in
            let hosting = try await host(node, monitoring, manager, whenFailed: stop)
            for await _ in run {}
            return hosting
        }
        stop()
        if let note = await code?.end() { environment.diagnostics.note(note) }
        await node.close()
        let reason = await printing.value
        return try withExtendedLifetime(try hosting.get()) { () throws(CommandFailure) in
            if environment.interruption.reason != nil {
                environment.announce("stopped", text: "stopped")
                return .success
            }
            throw code?.failure ?? CommandFailure(.nodeRefused, code: "closed", reason)
        }
    }

    /// Opens the stores, serves, begins the program's own code, and reports that the worker is ready.
    ///
    /// - Parameters:
    ///   - node: The node.
    ///   - monitoring: Where metrics and health are served; nil for nowhere.
    ///   - manager: The service manager, if there is one.
    ///   - whenFailed: Called if the program's own code fails later.
    /// - Returns: What is to be kept as long as the worker lives.
    /// - Throws: Why the worker can't begin.
    private func host(
        _ node: Node, _ monitoring: MonitoringOptions?, _ manager: ServiceManager?,
        whenFailed: @escaping @Sendable () -> Void
    ) async throws(CommandFailure) -> (stores: [StoreName: HostedHandle], server: HTTPServer?) {
        let server = try monitoring?.serve(monitored(node), api: service.api)
        let stores = try await open(node)
        let served = try await service.serve(node, in: environment)
        try await code?.begin(on: node, whenFailed: whenFailed)
        guard code?.isReady != false else { return (stores, server) }
        await announceReady(node, stores.keys.sorted(), served, http: server?.address)
        manager?.ready { node.probe($0) }
        return (stores, server)
    }

    private func connect(_ settings: NodeSettings) async throws(CommandFailure) -> Node {
        try await environment.interruption.cancelling { () async throws(CommandFailure) in
            try await failing { () async throws(NodeError) in
                try await Node.connect(to: address, settings: settings, tap: service.tap)
            }
        }
    }

    /// Opens the stores. If one has stopped, which the node reports, the others are still served.
    private func open(
        _ node: Node
    ) async throws(CommandFailure) -> [StoreName: HostedHandle] {
        try await environment.interruption.cancelling { () async throws(CommandFailure) in
            let patience = environment.arguments[WorkerOptions.timeout]
            var handles: [StoreName: HostedHandle] = [:]
            var stopped: NodeError?
            for store in stores {
                guard let state = states.first(where: { $0.name == store.state.text }) else {
                    continue
                }
                do throws(NodeError) {
                    handles[store] = try await service.open(
                        store, of: state, on: node, patience: patience)
                } catch {
                    guard error.code == .storeStopped else { throw CommandFailure(error) }
                    stopped = error
                }
            }
            if handles.isEmpty, let stopped { throw CommandFailure(stopped) }
            return handles
        }
    }

    private func announceReady(
        _ node: Node, _ stores: [StoreName], _ served: (fields: JSONFields, text: String),
        http: String?
    ) async {
        let status = await node.status
        let fields: JSONFields = [
            "address": address, "http": http, "incarnation": status.incarnation, "name": name,
            "stores": stores,
        ]
        let title = name.map { "\($0) is ready" } ?? "ready"
        let api = { (address: String) in
            service.api == nil
                ? "" : ", API at http://\(address)/api/v1, console at http://\(address)/"
        }
        environment.announce(
            "ready", fields.merging(served.fields) { $1 },
            text: """
                \(title): node \(status.incarnation) of \(address) hosts \
                \(stores.isEmpty ? "nothing" : stores.map(\.description).joined(separator: ", "))\
                \(served.text)\(http.map { "; metrics at http://\($0)/metrics\(api($0))" } ?? "")
                """)
    }

    /// The functions for metrics and health over HTTP.
    private func monitored(_ node: Node) -> Monitored {
        let process = ProcessFamilies(
            program: environment.arguments.path.joined(separator: " "), version: version)
        let (stores, code) = (stores, code)
        let readinessFaults: @Sendable (NodeMetrics) -> [String] = { metrics in
            let missing = stores.filter { !metrics.stores.contains($0) }
            return metrics.readinessFaults + missing.map { "\($0) is not open" }
                + (code?.isReady == false ? ["the program's own code is not ready"] : [])
        }
        return Monitored(
            metrics: {
                let metrics = node.metrics()
                return process.families(
                    isReady: readinessFaults(metrics).isEmpty, bounds: metrics.bounds)
                    + metrics.families
            },
            livenessFaults: { node.metrics().livenessFaults },
            readinessFaults: { readinessFaults(node.metrics()) })
    }
}

extension Invocation {
    /// The stores that a worker hosts.
    ///
    /// - Parameter states: The states that its program has.
    /// - Returns: Each store once; without `--store` the shared store of each state.
    /// - Throws: A usage error if a store's state is unknown.
    package func stores(of states: [HostedState]) throws(UsageError) -> [StoreName] {
        var stores: [StoreName] = []
        for store in self[WorkerOptions.stores] where !stores.contains(store) {
            stores.append(store)
        }
        for store in stores { try check(store, isOf: states) }
        return stores.isEmpty ? states.compactMap { StoreName($0.name) } : stores
    }

    /// Checks that the program has the state of a store.
    ///
    /// - Throws: A usage error that names its states.
    func check(_ store: StoreName, isOf states: [HostedState]) throws(UsageError) {
        let known = states.map(\.name)
        guard !known.contains(store.state.text) else { return }
        throw usageError(
            "this program has no state '\(store.state)'; it has: "
                + known.sorted().joined(separator: ", "),
            meaning: store.state.text, of: known)
    }
}
