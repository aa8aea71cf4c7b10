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
            .feedFellBack, .feedRestored, .reconnected, .closed:
            break
        }
    }
}
