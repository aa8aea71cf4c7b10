import ConfluxEtcd
import ConfluxLog
import ConfluxSequencer

/// Is only compiled: it names machines that are not there.
func share() throws {
    let text = "etcds://etcd-1:2379,etcd-2:2379,etcd-3:2379/shop"
    guard let address = EtcdAddress(text) else { fatalError("\(text) is no address of etcd") }
    let settings = EtcdLogSettings(address: address)
    let storage = SequencerConfiguration.Storage.shared { () throws(LogError) in
        try EtcdLog(settings)
    }
    var configuration = SequencerConfiguration(bind: "tcp://*:7400", storage: storage)
    configuration.advertise = "tcp://sequencer-1:7400"
    _ = try Sequencer.start(configuration)
}
