import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Stores that stop in a node: the sequencer learns of each, whenever it stopped.
struct StoppedScenarios {
    private let list = StoreName("list")!

    /// Two nodes with a store, and an observer.
    private func started() -> Cluster {
        var cluster = Cluster.twoNodes()
        cluster.addNode(3, role: .observer)
        cluster.dispatch(["a", "b"], to: "list/*", from: 1)
        return cluster
    }

    private func life(in cluster: Cluster) throws -> SequenceNumber {
        try #require(cluster.sequencer?.directory.store(list)?.life)
    }

    /// The node could not open the store, since it stopped there.
    private func failToOpen(
        _ id: Cluster.NodeID, at sequence: SequenceNumber, in cluster: inout Cluster
    ) throws {
        let stopped = StoppedStore(store: list, life: try life(in: cluster), sequence: sequence)
        let resets = cluster.nodes[id]?.resets ?? 0
        cluster.input(.reported(.stopped(stopped), resets: resets), to: id)
        cluster.input(.close(.store(list)), to: id)
        cluster.input(.reported(.stopped(stopped), resets: resets), to: id)
        cluster.run()
    }

    /// How many nodes host the store, and where its replicas have stopped.
    private func status(
        in cluster: inout Cluster
    ) throws -> (hosts: UInt32, stops: [SequenceNumber], count: Int) {
        let question = Question(number: 1, patience: .seconds(5), body: .status)
        cluster.input(.ask(question), to: 3)
        cluster.run()
        guard case .status(let status)? = cluster.nodes[3]?.answers.last?.body else {
            throw WireError.malformed(at: 0, expected: "a status")
        }
        let count = cluster.sequencer?.gauges.stoppedReplicaCount ?? 0
        guard let store = status.stores.first(where: { $0.store == list }) else {
            return (0, [], count)
        }
        return (store.hosts, store.stopped.map(\.sequence), count)
    }

    @Test func `a store that stopped while it was opened is listed until it is opened again`()
        throws
    {
        var cluster = started()
        try failToOpen(2, at: SequenceNumber(9), in: &cluster)
        #expect(try status(in: &cluster) == (1, [SequenceNumber(9)], 1))
        cluster.reconnect(2)
        cluster.pass(.seconds(1))
        #expect(try status(in: &cluster) == (1, [SequenceNumber(9)], 1))
        cluster.killSequencer()
        cluster.restartSequencer()
        cluster.pass(.seconds(3))
        #expect(try status(in: &cluster) == (1, [SequenceNumber(9)], 1))
        cluster.open("list", on: 2)
        #expect(try status(in: &cluster) == (2, [], 0))
        cluster.pass(.seconds(3))
        #expect(try status(in: &cluster) == (2, [], 0))
    }

    @Test func `a stopped store that is closed, or whose node leaves, is listed no more`() throws {
        var cluster = started()
        let stopped = StoppedStore(
            store: list, life: try life(in: cluster), sequence: SequenceNumber(9))
        cluster.input(.reported(.stopped(stopped), resets: 0), to: 2)
        cluster.run()
        #expect(try status(in: &cluster) == (2, [SequenceNumber(9)], 1))
        cluster.input(.close(.store(list)), to: 2)
        cluster.run()
        #expect(try status(in: &cluster) == (1, [], 0))
        try failToOpen(2, at: SequenceNumber(9), in: &cluster)
        #expect(try status(in: &cluster) == (1, [SequenceNumber(9)], 1))
        cluster.removeNode(2)
        cluster.pass(.seconds(30))
        #expect(try status(in: &cluster) == (1, [], 0))
    }

    @Test func `the end of a life ends what is known of its replicas`() throws {
        var cluster = started()
        try failToOpen(2, at: SequenceNumber(9), in: &cluster)
        _ = cluster.drop("list", by: 1)
        cluster.run()
        #expect(try status(in: &cluster) == (0, [], 0))
        cluster.open("list", on: 1)
        cluster.pass(.seconds(3))
        #expect(try status(in: &cluster) == (1, [], 0))
    }

    @Test func `a key that may not host a store can't say that it stopped`() throws {
        var peers = RawPeers()
        peers.join(9)
        peers.open("list", request: 1, on: 9)
        peers.open("cart/1", request: 2, on: 9)
        let cart = try #require(StoreName("cart/1"))
        let rights = Rights(patterns: [.host: [try #require(StorePattern("cart/*"))]])
        peers.principals[1] = Principal(name: Name("guest"), rights: rights)
        peers.join(1)
        let stopped = [list, cart].compactMap { store in
            peers.cluster.sequencer?.directory.store(store).map {
                StoppedStore(store: store, life: $0.life, sequence: $0.life)
            }
        }
        #expect(stopped.count == 2)
        peers.say(.progress(Progress(applied: .zero, settled: 0, stopped: stopped)), on: 1)
        let stops = [list, cart].map {
            peers.cluster.sequencer?.directory.life(of: $0)?.work.stops.count
        }
        #expect(stops == [0, 1])
    }
}
