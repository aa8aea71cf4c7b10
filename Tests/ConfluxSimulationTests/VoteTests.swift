import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol
@testable import ConfluxSimulation

/// Which votes the checks count.
struct VoteTests {
    @Test func `a vote that arrives after its node has left is counted`() throws {
        let cluster = SimulatedCluster(
            plan: .calm, states: [.journal], random: SimulationRandom(seed: 1), isTracing: false)
        cluster.begin()
        func joined() -> (node: SimulatedNode, connection: UInt64)? {
            for node in cluster.nodes.values where node.machine.isJoined {
                if let connection = node.connection { return (node, connection) }
            }
            return nil
        }
        while joined() == nil { try #require(cluster.step()) }
        let (node, connection) = try #require(joined())
        let session = node.machine.incarnation
        node.isLeaving = true
        try cluster.finishLeaving(node.process, isForced: true)
        #expect(cluster.nodes[node.process] == nil)
        #expect(session != .none)
        #expect(cluster.speaker(on: ConnectionID(rawValue: connection)) == session)
    }
}
