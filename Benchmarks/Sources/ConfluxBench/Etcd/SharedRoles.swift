import ConfluxEtcd
import ConfluxLog
import ConfluxNode
import ConfluxSequencer

/// The processes around a log on etcd.
enum SharedRoles {
    /// Serves, or stands by while another sequencer serves.
    static func sequencer(log text: String) async throws {
        guard let address = EtcdAddress(text) else { throw BenchError("no address: \(text)") }
        let storage = SequencerConfiguration.Storage.shared { () throws(LogError) in
            try EtcdLog(EtcdLogSettings(address: address))
        }
        let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
        let sequencer = try Sequencer.start(
            SequencerConfiguration(bind: Cluster.loopback, storage: storage)
        ) { event in
            switch event {
            case .serving, .standingBy: beginning.finish()
            default: break
            }
        }
        Control.tell(.listening([sequencer.address, sequencer.feedAddress]))
        for await _ in begun {}
        Control.tell(.ready)
        throw BenchError("the sequencer ended: \(await sequencer.ended())")
    }

    /// Dispatches an action when it is told to, and tells how long its receipt took.
    static func failover(at place: Place) async throws {
        let node = try await Node.connect(to: place.address, settings: try place.nodeSettings)
        try await node.bridge(FrameState<OpaqueRecord>.self)
        let actions = Store<FrameState<OpaqueRecord>>.actions
        let action = OpaqueRecord(bytes: Role.payloadBytes)
        try await actions.dispatch(action).receipt()
        let start = NodeRoles.begin()
        try await actions.dispatch(action).receipt()
        Control.tell(.took(monotonicNanoseconds() - start))
        await node.close()
    }
}
