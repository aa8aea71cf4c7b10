import ConfluxEtcd
import ConfluxVocabulary

/// Something that is to happen in a simulated cluster.
enum ClusterEvent {
    // Frames arrive: the oldest of what is under way there.
    case arriveUp(connection: UInt64)
    case arriveDown(connection: UInt64)
    case arriveFeed(subscription: UInt64, [UInt8])
    /// A sequencer finds that a connection has ended.
    case findEnd(process: Int, connection: UInt64)

    // Processes continue.
    case workLog(process: Int)
    /// The thread that reads the log for others does its next job.
    case workReads(process: Int)
    case drained(process: Int)
    case sequencerTick(process: Int)
    case subscribed(process: Int)
    case renewTenure(process: Int)
    // Where several sequencers share a log.
    case answerLog(process: Int)
    case watch(process: Int)
    case rested(process: Int)
    case hinted(process: Int)
    case doubted(process: Int)
    case say(process: Int, Epoch)
    case said(process: Int, Epoch)
    case nodeTick(process: Int)
    case apply(process: Int)
    case tell(process: Int)
    case background(process: Int)
    case workStore(process: Int)

    // The network's own.
    case connect(process: Int)
    case subscribe(process: Int)

    // People, and what goes wrong.
    case dispatch(process: Int)
    case startSequencer
    case startStandby(slot: Int)
    /// A request comes to the etcd that nobody waits for any more.
    case hearLate(EtcdTransaction)
    case startNode(slot: Int)
    case fault(ClusterFault)
    case resume(process: Int)
    case giveUpLeaving(process: Int)
}

/// Faults that come again and again.
public enum ClusterFault: String, CaseIterable, Sendable {
    case breakConnection, crashNode, crashSequencer, pause, leave, losePower, restoreCopy, reopen
    case freeze, spoil, poison, upgrade, damage
    /// Where several sequencers share a log: one of them is cut off from the log, or from the nodes, the log is there for
    /// nobody, or one hands over.
    case cutFromLog, cutFromNodes, stopLog, handOver
}
