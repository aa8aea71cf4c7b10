import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// The text about a divergence, which `conflux status` prints, and the sequencer when it detects one.
enum DivergenceText {
    static func json(_ status: DivergenceStatus, _ names: [Incarnation: Name]) -> JSONObject {
        var fields: JSONObject = [
            "firstUnequal": .number(status.firstUnequal), "lastEqual": .number(status.lastEqual),
            "majority": .bool(status.isMajority),
            "nodes": .array(status.nodes.map { .object(NodeText.json($0, names)) }),
        ]
        fields["path"] = status.path.map { .string($0) }
        return fields
    }

    static func words(
        _ store: StoreName, _ status: DivergenceStatus, _ names: [Incarnation: Name]
    ) -> String {
        let nodes = status.nodes.map { NodeText.words($0, names) }.joined(separator: ", ")
        let place = status.path.map { $0.isEmpty ? "" : ", first at \($0)" } ?? ""
        let what =
            status.isMajority
            ? "\(nodes) differed from the majority, and load its state"
            : "no state has a majority among \(nodes), so no replica reloads"
        return "\(store) diverged between entries \(status.lastEqual) and \(status.firstUnequal)"
            + "\(place): \(what)"
    }
}

/// The text about a node.
enum NodeText {
    static func json(_ node: Incarnation, _ names: [Incarnation: Name]) -> JSONObject {
        var fields: JSONObject = ["incarnation": .number(node)]
        fields["name"] = names[node].map { .string($0.text) }
        return fields
    }

    static func words(_ node: Incarnation, _ names: [Incarnation: Name]) -> String {
        names[node]?.text ?? "node \(node)"
    }
}

extension SequencerStatus {
    /// The names of the nodes that have one.
    var names: [Incarnation: Name] {
        var names: [Incarnation: Name] = [:]
        for session in sessions { names[session.incarnation] = session.name }
        return names
    }
}
