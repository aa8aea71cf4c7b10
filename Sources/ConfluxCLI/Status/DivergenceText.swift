import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// The text about a divergence, which `conflux status` prints, and the sequencer when it detects one.
enum DivergenceText {
    static func words(
        _ store: StoreName, _ status: DivergenceStatus, _ names: [Incarnation: Name]
    ) -> String {
        let nodes = status.nodes.map { names.words($0) }.joined(separator: ", ")
        let place = status.path.map { $0.isEmpty ? "" : ", first at \($0)" } ?? ""
        let what =
            status.isMajority
            ? "\(nodes) differed from the majority, and load its state"
            : "no state has a majority among \(nodes), so no replica reloads"
        return "\(store) diverged between entries \(status.lastEqual) and \(status.firstUnequal)"
            + "\(place): \(what)"
    }
}

extension [Incarnation: Name] {
    /// The text about a node.
    func words(_ node: Incarnation) -> String { self[node]?.text ?? "node \(node)" }
}
