import ConfluxArguments
import ConfluxMonitoring
import ConfluxNode

/// One run of a worker: it connects, opens its stores, reports that it is ready, reports events, and
/// leaves when it is asked to.
struct WorkerSession: Sendable {
    let environment: CommandEnvironment
    let version: String
    let states: [HostedState]
    let address: String
    let name: Name?
    let stores: [StoreName]

    /// How long a worker that ends waits for outcomes.
    private static let closeTimeout = Duration.seconds(3)

    init(
        _ environment: CommandEnvironment, version: String, states: [HostedState]
    ) throws(UsageError) {
        let arguments = environment.arguments
        self.environment = environment
        self.version = version
        self.states = states
        address = arguments[WorkerOptions.connect]
        name = arguments[WorkerOptions.name]
        var stores: [StoreName] = []
        for store in arguments[WorkerOptions.stores] where !stores.contains(store) {
            stores.append(store)
        }
        let known = states.map(\.name)
        for store in stores where !known.contains(store.state.text) {
            throw arguments.usageError(
                "this worker has no state '\(store.state)'; it has: "
                    + known.sorted().joined(separator: ", "),
                meaning: store.state.text, of: known)
        }
        if stores.isEmpty { stores = known.compactMap { StoreName($0) } }
        self.stores = stores
    }

    func run() async throws(CommandFailure) -> ExitCode {
        var settings = NodeSettings(name: name)
        settings.connectTimeout = environment.arguments[WorkerOptions.timeout]
        settings.closeTimeout = Self.closeTimeout
        settings.payloadBytesMax = environment.arguments[WorkerOptions.payloadMax]
        settings.upgrades = environment.arguments[WorkerOptions.upgrades].policy
        settings.crashJournal = environment.arguments[WorkerOptions.journal]
        settings.keys = try WorkerOptions.keys(environment.arguments)
        let manager = try ServiceManager.find(environment.diagnostics)
        defer { manager?.stopping() }
        let monitoring = try MonitoringOptions(environment.arguments)
        let node = try await connect(settings)
        let events = node.events
        environment.interruption.whenFired {
            manager?.stopping()
            Task { await node.close() }
        }
        let printing = Task { await tell(events) }
        let opened: [StoreName: HostedHandle]
        var server: MonitoringServer?
        do throws(CommandFailure) {
            server = try monitoring?.serve(monitored(node))
            opened = try await open(node)
        } catch {
            await node.close()
            _ = await printing.value
            throw error
        }
        await announceReady(node, opened.keys.sorted(), http: server?.address)
        manager?.ready { node.probe($0) }
        let reason = await printing.value
        await node.close()
        return try withExtendedLifetime((opened, server)) { () throws(CommandFailure) in
            if environment.interruption.reason != nil {
                environment.announce("stopped", text: "stopped")
                return .success
            }
            throw CommandFailure(.nodeRefused, code: "closed", reason)
        }
    }

    private func connect(_ settings: NodeSettings) async throws(CommandFailure) -> Node {
        try await environment.interruption.cancelling { () async throws(CommandFailure) in
            do throws(NodeError) {
                return try await Node.connect(to: address, settings: settings)
            } catch {
                throw CommandFailure(error)
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
                    handles[store] = try await state.open(node, store.instance, patience)
                } catch {
                    guard error.code == .storeStopped else { throw CommandFailure(error) }
                    stopped = error
                }
            }
            if handles.isEmpty, let stopped { throw CommandFailure(stopped) }
            return handles
        }
    }

    private func announceReady(_ node: Node, _ stores: [StoreName], http: String?) async {
        let status = await node.status
        var fields: JSONObject = [
            "address": .string(address), "incarnation": .number(status.incarnation),
            "stores": .texts(stores),
        ]
        fields["name"] = name.map { .string($0.text) }
        fields["http"] = http.map { .string($0) }
        let title = name.map { "\($0) is ready" } ?? "ready"
        environment.announce(
            "ready", fields,
            text: """
                \(title): node \(status.incarnation) of \(address) hosts \
                \(stores.map(\.description).joined(separator: ", "))\
                \(http.map { "; metrics at http://\($0)/metrics" } ?? "")
                """)
    }

    /// The functions for metrics and health over HTTP.
    private func monitored(_ node: Node) -> Monitored {
        let process = ProcessFamilies(
            program: environment.arguments.path.joined(separator: " "), version: version)
        let stores = stores
        let readinessFaults: @Sendable (NodeMetrics) -> [String] = { metrics in
            let missing = stores.filter { !metrics.stores.contains($0) }
            return metrics.readinessFaults + missing.map { "\($0) is not open" }
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

    /// Reports events until the node has ended.
    ///
    /// - Returns: Why it ended.
    private func tell(_ events: AsyncStream<NodeEvent>) async -> String {
        var reason = "The node has ended."
        for await event in events {
            if case .closed(let message) = event {
                reason = message
            } else {
                tell(event)
            }
        }
        return reason
    }

    private func words(_ divergence: StateDivergence) -> String {
        let place = divergence.path.map { " at \($0.isEmpty ? "the whole state" : $0)" } ?? ""
        let what =
            divergence.isReloading
            ? "this node's state differs from the majority's\(place); it loads the majority's state"
            : divergence.isMajority
                ? "a minority of the replicas differs; this node does not"
                : "the replicas differ\(place), and no majority tells which is right, so no "
                    + "replica reloads"
        return "\(divergence.store) diverged between entries \(divergence.lastEqual) and "
            + "\(divergence.firstUnequal): \(what). Its code is not deterministic, or not the same "
            + "everywhere."
    }

    private func tell(_ event: NodeEvent) {
        func range(_ from: SequenceNumber, _ through: SequenceNumber) -> JSONObject {
            ["from": .number(from), "through": .number(through)]
        }
        if let report = LinkReport(event, to: address) {
            environment.announce(report.event, report.fields, text: report.text)
            return
        }
        switch event {
        case .heldUp(let message):
            environment.announce(
                "heldUp", ["message": .string(message)], text: "actions wait: \(message)")
        case .staleSequencer(let epoch):
            environment.announce(
                "staleSequencer", ["epoch": .number(epoch)],
                text: "a sequencer of epoch \(epoch), which is over, still sends; it is ignored")
        case .historyLost(let from, let through):
            environment.announce(
                "historyLost", range(from, through),
                text: """
                    the log has lost entries \(from) to \(through), which this node had applied; \
                    its stores were reloaded
                    """)
        case .sessionForgotten:
            environment.announce(
                "sessionForgotten",
                text: "the sequencer has forgotten this node's session; the node joins again")
        case .missed(let from, let through):
            environment.announce(
                "missed", range(from, through),
                text: "entries \(from) to \(through) are no longer in the log and were missed")
        case .logDamaged(let from, let through, let message):
            var fields = range(from, through)
            fields["message"] = .string(message)
            environment.announce(
                "logDamaged", fields,
                text: "entries \(from) to \(through) can't be read in the log: \(message)")
        case .storeDropped(let store):
            environment.announce(
                "storeDropped", ["store": .string(store.description)],
                text: "\(store) was dropped, and is no longer hosted")
        case .storeStopped(let store, let sequence, let message):
            var fields: JSONObject = [
                "message": .string(message), "store": .string(store.description),
            ]
            fields["sequence"] = sequence.map { .number($0) }
            environment.announce(
                "storeStopped", fields,
                text: sequence == nil ? "\(store) is no longer hosted: \(message)" : message)
        case .upgradeFailed(let store, let version, let message):
            environment.announce(
                "upgradeFailed",
                [
                    "message": .string(message), "schemaVersion": .number(UInt64(version)),
                    "store": .string(store.description),
                ],
                text: """
                    this program can't migrate \(store) to schema version \(version), so nothing has changed: \
                    \(message)
                    """)
        case .diverged(let divergence):
            var fields: JSONObject = [
                "firstUnequal": .number(divergence.firstUnequal),
                "lastEqual": .number(divergence.lastEqual),
                "majority": .bool(divergence.isMajority),
                "reloading": .bool(divergence.isReloading),
                "store": .string(divergence.store.description),
            ]
            fields["path"] = divergence.path.map { .string($0) }
            environment.announce("diverged", fields, text: words(divergence))
        case .crashJournal(let message):
            environment.announce(
                "crashJournal", ["message": .string(message)], text: message)
        case .bridgeStopped(let state, let message):
            environment.announce(
                "bridgeStopped", ["message": .string(message), "state": .string(state.text)],
                text: "\(state) is no longer bridged: \(message)")
        case .unreadableFrame(let message):
            environment.announce(
                "unreadableFrame", ["message": .string(message)],
                text: "a frame could not be read and was ignored: \(message)")
        case .joined, .disconnected, .unreachable, .connectionRefused, .sequencerNotServing,
            .reconnected, .closed:
            break
        }
    }
}
