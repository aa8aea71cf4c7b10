import ConfluxVocabulary

@testable import ConfluxProtocol

extension Cluster {
    /// A cluster with a worker that has a list, as node 9, and a first process with the key, as node 1.
    static func withKeyedProcess() -> Cluster {
        var cluster = Cluster()
        cluster.startSequencer()
        cluster.addNode(9, named: "worker", store: "list")
        cluster.addNode(1, key: "k")
        return cluster
    }

    func resumption(of id: Int) -> Resumption? { nodes[id]?.machine.resumption }

    func isCommitted(by id: Int, _ counter: UInt64) -> Bool {
        if case .committed = nodes[id]?.outcomes[counter] { true } else { false }
    }

    /// The texts in the worker's list.
    var workersTexts: [String] { nodes[9]?.texts(of: "list") ?? [] }
}
