import Conflux
import ConfluxVocabulary
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol
@testable import ConfluxSimulation

/// The stores that a node's applier has. The checks compare outcomes and effects with these.
struct HostedStoresTests {
    private static let state = SimulatedState.model(SimulationTests.Stock.self, instances: 1) { _ in
        .add(amount: 1)
    }
    private let name = state.stores[0]
    private let node = SimulatedNode(
        slot: 0, process: 1, kind: .worker, settings: ReplicaSettings(name: nil, role: .member),
        nonce: Nonce.none, limits: .standard, outboxBytesMax: 1 << 20, shelf: EncodingShelf(),
        inPlaceBytesMax: .max, openBytesMax: 1 << 20, waitingOutcomesMax: 1_024,
        program: Program(states: [state]),
        deaths: [], clock: { .zero })

    private func make() -> any SimulatedStore {
        Self.state.host(name, node.scope, node.outbox, nil)
    }

    /// Makes the applier start a store from its initial state, without the report that it is open.
    private func begin(_ store: any SimulatedStore, request: UInt64, life: SequenceNumber) {
        node.replicas.append(store)
        let registration = store.open(
            request: request, scope: node.scope, payloadBytesMax: 1_024,
            policy: .whenAllUnderstand, completion: { _ in },
            lost: { _ in })
        node.applier.perform(.register(registration))
        let state = EncodedState(coding: .json, bytes: Array("{\"left\":0}".utf8)[...])
        node.applier.perform(
            .deliver(
                .restore(
                    name, life: life, Snapshot(sequence: life, schemaVersion: 1, state: state),
                    in: VersionInForce(1), aside: nil, skipped: [], through: life,
                    request: request),
                log: LogID(high: 1, low: 1), epoch: Epoch(1)))
    }

    @Test func `a store that is opened after the loss of a closed one stays`() {
        let (former, next) = (make(), make())
        node.replicas = [former]
        node.noteClosing(former)
        // Before the applier learns it, the store is dropped, and another one is opened.
        node.noteEnd(of: former)
        node.replicas.append(next)
        node.noteEnd(by: .unregister(.store(name)))
        #expect(node.replicas.count == 1 && node.replicas.first === next)
    }

    @Test func `a closed store stays closed, though another one is opened after it`() {
        let (former, next) = (make(), make())
        node.replicas = [former]
        node.noteClosing(former)
        node.replicas.append(next)
        node.noteEnd(by: .unregister(.store(name)))
        #expect(node.replicas.count == 1 && node.replicas.first === next)
    }

    @Test func `a store that an applier has begun counts before the program knows it to be open`() {
        begin(make(), request: 1, life: SequenceNumber(3))
        #expect(node.stores.isEmpty)
        #expect(node.hosted.map(\.store) == [name])
        #expect(node.hosted.map(\.life) == [SequenceNumber(3)])
    }
}
