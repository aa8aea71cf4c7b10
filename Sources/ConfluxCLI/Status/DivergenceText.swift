import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// Where replicas of a store differ, as it is printed: by `conflux status`, and by the sequencer when
/// it is found out.
enum DivergenceText {
    static func json(_ status: DivergenceStatus, _ names: [Incarnation: Name]) -> JSONObject {
        var fields: JSONObject = [
            "firstUnequal": .number(status.firstUnequal), "lastEqual": .number(status.lastEqual),
            "majority": .bool(status.isMajority),
            "nodes": .array(
                status.nodes.map { incarnation in
                    var node: JSONObject = ["incarnation": .number(incarnation)]
                    node["name"] = names[incarnation].map { .string($0.text) }
                    return .object(node)
                }),
        ]
        fields["path"] = status.path.map { .string($0) }
        return fields
    }

    static func words(
        _ store: StoreName, _ status: DivergenceStatus, _ names: [Incarnation: Name]
    ) -> String {
        let nodes = status.nodes.map { names[$0].map { "\($0)" } ?? "node \($0)" }
            .joined(separator: ", ")
        let place = status.path.map { $0.isEmpty ? "" : ", first at \($0)" } ?? ""
        let what =
            status.isMajority
            ? "\(nodes) had another state than the majority, which they load"
            : "\(nodes) have no majority for any state, and nobody reloads"
        return "\(store) diverged between entries \(status.lastEqual) and \(status.firstUnequal)"
            + "\(place): \(what)"
    }
}

extension SequencerStatus {
    /// What the nodes are called that have a name.
    var names: [Incarnation: Name] {
        var names: [Incarnation: Name] = [:]
        for session in sessions { names[session.incarnation] = session.name }
        return names
    }
}
