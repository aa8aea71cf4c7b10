import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// What happens to a node. Events change nothing.
public enum NodeEvent: Sendable, Equatable {
    /// The node has a session, in this epoch of this log.
    case joined(LogID, Epoch, Incarnation)
    /// The node hears nothing from the sequencer, by its answers or by its feed, and tries to reach it. Reads
    /// continue; dispatches wait.
    case disconnected
    /// An address of the sequencer can't be reached or does not answer: that for requests, or that of its feed. The
    /// message names the address, the reason and what to do. It follows ``disconnected``, and is reported once for each reason in a row.
    case unreachable(message: String)
    /// The server at the sequencer's address refused the connection, or the node's key lost a right
    /// that the node needs, for the reason in the message. The node tries again after a while.
    /// Reported once for each reason in a row.
    case connectionRefused(message: String)
    /// The sequencer is there, but serves nobody until its log works again, for the reason in the
    /// message. Reported once for each reason in a row.
    case sequencerNotServing(message: String)
    /// The feed no longer comes from a relay, and comes from another one or from the sequencer itself, for the reason in
    /// the message. Nothing is lost. The node tries its first choice again after 30 seconds, then after growing pauses
    /// of up to 5 minutes.
    case feedFellBack(from: String, to: String, message: String)
    /// The feed comes from the node's first choice again, after ``feedFellBack(from:to:message:)``.
    case feedRestored(to: String)
    /// The sequencer admits no actions of this node now: its log has no room. The message says what holds it, how much
    /// is kept, and what to do. The actions wait. Reported after two seconds, and once for each message in a row.
    case heldUp(message: String)
    /// The node hears from the sequencer again, by its answers and by its feed, or another term has begun.
    case reconnected(Epoch)
    /// A sequencer whose term is over still sends messages; they are ignored.
    case staleSequencer(Epoch)
    /// The log lost entries that this node had; its replicas were loaded anew.
    case historyLost(from: SequenceNumber, through: SequenceNumber)
    /// The sequencer has forgotten the session; actions without a receipt end in
    /// `DispatchError.Code.outcomeUnknown`.
    case sessionForgotten
    /// Entries that a bridged state will never see: the log no longer holds them.
    case missed(from: SequenceNumber, through: SequenceNumber)
    /// Entries of the log that this node asked for can't be read, for the reason in the message.
    /// Stores that need them are loaded from a newer snapshot, or can't be opened; all others
    /// continue.
    case logDamaged(from: SequenceNumber, through: SequenceNumber, message: String)
    /// An open store was dropped. It keeps its last state, is no longer hosted, and dispatches to it
    /// fail with `DispatchError.Code.storeStopped`. Opening the name again begins another store.
    case storeDropped(StoreName)
    /// A store applies no further entries here. It keeps its last state, and dispatches to it fail
    /// with `DispatchError.Code.storeStopped`. Either it stopped before an entry: one that a newer
    /// program wrote, or one that this program died of before (``NodeSettings/crashJournal``). Or,
    /// without a number, it could not be opened again after its history was lost, and is hosted no
    /// longer.
    case storeStopped(StoreName, at: SequenceNumber?, message: String)
    /// This program can't migrate a store's state to this schema version. The store keeps its version, here and
    /// everywhere.
    case upgradeFailed(StoreName, schemaVersion: Int, message: String)
    /// This node can't tell a store that time has passed (`ScheduledModel.timePassed`), for the reason in the message:
    /// for example, its key may not dispatch to the store, or the model's check refuses the action. It tries again. What is
    /// due fires with the next entry, such as that of another host. Reported once for each kind of reason in a row.
    case tickFailed(StoreName, message: String)
    /// Replicas of a store differ; this node's replica may be one of them (rule 22).
    case diverged(StateDivergence)
    /// A problem of the crash journal that the operator should know: a damaged one begins anew,
    /// or it has no place for a store.
    case crashJournal(message: String)
    /// A bridged state could not be bridged again after its history was lost. Global dispatches of
    /// it fail with `DispatchError.Code.storeStopped` until it is bridged or unbridged.
    case bridgeStopped(Name, message: String)
    /// A frame could not be read, and was ignored.
    case unreadableFrame(String)
    /// The node has ended; nothing follows.
    case closed(message: String)

    /// The node's event for a report of the machine; nil for one that is reported in other words.
    static func protocolEvent(_ event: ReplicaEvent) -> NodeEvent? {
        switch event {
        case .feedSilent: nil
        case .joined(let log, let epoch, let incarnation): .joined(log, epoch, incarnation)
        case .disconnected: .disconnected
        case .reconnected(let epoch): .reconnected(epoch)
        case .staleSequencer(let epoch): .staleSequencer(epoch)
        case .historyLost(let from, let through): .historyLost(from: from, through: through)
        case .sessionForgotten: .sessionForgotten
        case .missed(let from, let through): .missed(from: from, through: through)
        case .notAllowed(let message): .connectionRefused(message: message)
        case .notServing(let message): .sequencerNotServing(message: message)
        case .heldUp(let message): .heldUp(message: message)
        case .damaged(let damage):
            .logDamaged(from: damage.first, through: damage.last, message: damage.message)
        }
    }
}

/// A node's status at one moment.
public struct NodeStatus: Sendable, Hashable {
    /// The node's name, if it has one.
    public var name: Name?
    /// Whether it has a session, and hears from the sequencer: by its answers, and by its feed if the node has
    /// stores. A sequencer that dies or stops is noticed within two seconds.
    public var isConnected: Bool
    /// The log's id; nil before the first welcome.
    public var log: LogID?
    /// The epoch of the last welcome.
    public var epoch: Epoch
    /// The node's identity in the log.
    public var incarnation: Incarnation
    /// The last committed number that the node knows of.
    public var last: SequenceNumber
    /// The number up to which every replica here has applied.
    public var applied: SequenceNumber
    /// How many dispatched actions have no outcome yet, besides those in the outbox.
    public var unsettled: UInt64
    /// The stores that the node hosts.
    public var stores: [StoreName]
}
