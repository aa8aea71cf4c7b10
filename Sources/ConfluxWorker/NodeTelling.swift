import ConfluxNode

/// Reports the events of a worker's node.
struct NodeTelling: Sendable {
    let environment: CommandEnvironment
    let address: String

    /// Reports events until the node has ended.
    ///
    /// - Returns: Why it ended.
    func run(_ events: AsyncStream<NodeEvent>) async -> String {
        var reason = "The node has ended."
        for await event in events {
            if case .closed(let message) = event { reason = message }
            guard let report = NodeReport(event, at: address) else { continue }
            environment.announce(report.event, report.fields, text: report.text)
        }
        return reason
    }
}

/// What an event of a node says.
struct NodeReport {
    /// The event's name.
    let event: String
    /// The event's fields.
    let fields: JSONFields
    /// The line for people.
    let text: String
    /// Whether it is about the way to the sequencer: that it has failed, or works again.
    private(set) var isOfLink = false

    private init(_ event: String, _ fields: JSONFields = [:], _ text: String) {
        self.event = event
        self.fields = fields
        self.text = text
    }

    /// Makes the report of an event; nil for the end of the node.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - address: The address that the node was given.
    init?(_ event: NodeEvent, at address: String) {
        if let report = Self.ofLink(event, to: address) {
            self = report
            isOfLink = true
        } else if let report = Self.ofLog(event) ?? Self.ofStore(event) {
            self = report
        } else {
            return nil
        }
    }

    private static func ofLink(_ event: NodeEvent, to address: String) -> NodeReport? {
        switch event {
        case .joined(let log, let epoch, let node):
            NodeReport(
                "joined", ["epoch": epoch, "incarnation": node, "log": log],
                "joined log \(log) in epoch \(epoch) as node \(node)")
        case .disconnected:
            NodeReport(
                "disconnected", [:],
                "disconnected: the sequencer at \(address) does not answer; trying to reach it again"
            )
        case .unreachable(let message): NodeReport("unreachable", ["message": message], message)
        case .connectionRefused(let message):
            NodeReport("connectionRefused", ["message": message], message)
        case .sequencerNotServing(let message):
            NodeReport(
                "sequencerNotServing", ["message": message],
                "the sequencer does not serve: \(message)")
        case .reconnected(let epoch):
            NodeReport("reconnected", ["epoch": epoch], "reconnected in epoch \(epoch)")
        case .feedFellBack(let former, let present, let message):
            NodeReport(
                "feedFellBack", ["from": former, "message": message, "to": present], message)
        case .feedRestored(let address):
            NodeReport(
                "feedRestored", ["to": address], "the feed comes from \(address) again")
        default: nil
        }
    }

    private static func ofLog(_ event: NodeEvent) -> NodeReport? {
        switch event {
        case .heldUp(let message):
            NodeReport("heldUp", ["message": message], "actions wait: \(message)")
        case .staleSequencer(let epoch):
            NodeReport(
                "staleSequencer", ["epoch": epoch],
                "a sequencer of epoch \(epoch), which is over, still sends; it is ignored")
        case .historyLost(let from, let through):
            NodeReport(
                "historyLost", ["from": from, "through": through],
                """
                the log has lost entries \(from) to \(through), which this node had applied; \
                its stores were reloaded
                """)
        case .sessionForgotten:
            NodeReport(
                "sessionForgotten", [:],
                "the sequencer has forgotten this node's session; the node joins again")
        case .missed(let from, let through):
            NodeReport(
                "missed", ["from": from, "through": through],
                "entries \(from) to \(through) are no longer in the log and were missed")
        case .logDamaged(let from, let through, let message):
            NodeReport(
                "logDamaged", ["from": from, "message": message, "through": through],
                "entries \(from) to \(through) can't be read in the log: \(message)")
        case .crashJournal(let message):
            NodeReport("crashJournal", ["message": message], message)
        case .unreadableFrame(let message):
            NodeReport(
                "unreadableFrame", ["message": message],
                "a frame could not be read and was ignored: \(message)")
        default: nil
        }
    }

    private static func ofStore(_ event: NodeEvent) -> NodeReport? {
        switch event {
        case .storeDropped(let store):
            NodeReport(
                "storeDropped", ["store": store], "\(store) was dropped, and is no longer hosted")
        case .storeStopped(let store, let sequence, let message):
            NodeReport(
                "storeStopped", ["message": message, "sequence": sequence, "store": store],
                sequence == nil ? "\(store) is no longer hosted: \(message)" : message)
        case .upgradeFailed(let store, let version, let message):
            NodeReport(
                "upgradeFailed", ["message": message, "schemaVersion": version, "store": store],
                """
                this program can't migrate \(store) to schema version \(version), so nothing has changed: \
                \(message)
                """)
        case .tickFailed(let store, let message):
            NodeReport(
                "tickFailed", ["message": message, "store": store],
                "this program can't tell \(store) that time has passed: \(message)")
        case .diverged(let divergence):
            NodeReport(
                "diverged",
                [
                    "firstUnequal": divergence.firstUnequal, "lastEqual": divergence.lastEqual,
                    "majority": divergence.isMajority, "path": divergence.path,
                    "reloading": divergence.isReloading, "store": divergence.store,
                ], words(divergence))
        case .bridgeStopped(let state, let message):
            NodeReport(
                "bridgeStopped", ["message": message, "state": state],
                "\(state) is no longer bridged: \(message)")
        case .joined, .disconnected, .unreachable, .connectionRefused, .sequencerNotServing,
            .reconnected, .feedFellBack, .feedRestored, .heldUp, .staleSequencer, .historyLost,
            .sessionForgotten, .missed, .logDamaged, .crashJournal, .unreadableFrame, .closed:
            nil
        }
    }

    private static func words(_ divergence: StateDivergence) -> String {
        let place = divergence.path.map { " at \($0.isEmpty ? "the whole state" : $0)" } ?? ""
        let what =
            divergence.isReloading
            ? "this node's state differs from the majority's\(place); it loads the majority's state"
            : divergence.isMajority
                ? "a minority of the replicas differs; this node does not"
                : "the replicas differ\(place), and no majority tells which is right, so no "
                    + "replica reloads"
        return """
            \(divergence.store) diverged between entries \(divergence.lastEqual) and \
            \(divergence.firstUnequal): \(what). Its code is not deterministic, or not the same everywhere.
            """
    }
}
