import ConfluxNode
import ConfluxSequencer

/// A sequencer with a log in memory, in this process, and nodes of it.
struct EmbeddedCluster: Sendable {
    let sequencer: Sequencer

    /// Another node, as another process would have.
    func connect() async throws -> Node {
        try await Node.connect(to: sequencer.address, scope: Scope())
    }

    /// Runs a body with a cluster and a node of it, and ends both.
    static func run(_ body: (EmbeddedCluster, Node) async throws -> Void) async throws {
        let sequencer = try Sequencer.start(
            SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory))
        let cluster = EmbeddedCluster(sequencer: sequencer)
        do {
            let node = try await cluster.connect()
            try await body(cluster, node)
            await node.close()
        } catch {
            _ = await sequencer.stop()
            throw error
        }
        _ = await sequencer.stop()
    }
}
