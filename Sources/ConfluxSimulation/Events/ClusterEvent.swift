import ConfluxEtcd
import ConfluxVocabulary

/// An event in a simulated cluster.
enum ClusterEvent {
    // Frames arrive. On a connection it is the oldest one under way.
    case arriveUp(connection: UInt64)
    case arriveDown(connection: UInt64)
    case arriveFeed(subscription: UInt64, [UInt8])
    /// A sequencer notices that a connection has ended.
    case findEnd(process: Int, connection: UInt64)

    // Processes continue.
    case workLog(process: Int)
    /// The reading thread does its next job.
    case workReads(process: Int)
    case drained(process: Int)
    case sequencerTick(process: Int)
    case subscribed(process: Int)
    case renewTerm(process: Int)
    // Several sequencers share a log.
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
    case migrate(process: Int)
    case workStore(process: Int)

    // The network.
    case connect(process: Int)
    case subscribe(process: Int)

    // People and faults.
    case dispatch(process: Int)
    /// The user's program has its turn.
    case runProgram(process: Int)
    case startSequencer
    case startStandby(slot: Int)
    /// A request arrives at the etcd after its sender has stopped waiting.
    case hearLate(EtcdTransaction)
    case startNode(slot: Int)
    case fault(ClusterFault)
    case resume(process: Int)
    case giveUpLeaving(process: Int)
}

/// Faults that recur.
public enum ClusterFault: String, CaseIterable, Sendable {
    case breakConnection, crashNode, crashSequencer, pause, leave, losePower, restoreCopy, reopen
    case freeze, spoil, poison, upgrade, damage
    /// If several sequencers share a log: one of them is cut off from the log or from the nodes, nobody can
    /// reach the log, or one hands over.
    case cutFromLog, cutFromNodes, stopLog, handOver
}
