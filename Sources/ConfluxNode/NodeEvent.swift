import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// What a node tells whoever watches it. Events change nothing.
public enum NodeEvent: Sendable, Equatable {
    /// The node has a session, in this epoch of this log.
    case joined(LogID, Epoch, Incarnation)
    /// The sequencer is not heard of; the node tries to reach it. Reads go on; dispatches wait.
    case disconnected
    /// Whoever listens at the sequencer's address refused the connection, or the node's key may not do
    /// what the node does any more, for the reason in the message.
    /// The node tries again after a while, in case that changes. Told once for each reason in a row.
    case connectionRefused(message: String)
    /// The sequencer is there, and hears nobody before its log works again, for the reason in the message.
    /// Told once for each reason in a row.
    case sequencerNotServing(message: String)
    /// The sequencer is heard of again, or another tenure has begun.
    case reconnected(Epoch)
    /// A sequencer whose tenure is over still speaks; it is ignored.
    case staleSequencer(Epoch)
    /// The log lost entries that this node had; its replicas were loaded anew.
    case historyLost(from: SequenceNumber, through: SequenceNumber)
    /// The sequencer has forgotten the session; actions without a receipt end in
    /// `DispatchError.Code.outcomeUnknown`.
    case sessionForgotten
    /// Entries that a bridged state will never see: the log no longer holds them.
    case missed(from: SequenceNumber, through: SequenceNumber)
    /// Entries of the log that this node asked for can't be read, for the reason in the message. Stores
    /// that need them are loaded from a newer snapshot, or can't be opened; all others go on.
    case logDamaged(from: SequenceNumber, through: SequenceNumber, message: String)
    /// A store that was open was dropped. It keeps its last state, is hosted no longer, and what is
    /// dispatched to it fails with `DispatchError.Code.storeStopped`. Who opens the name again begins
    /// another store.
    case storeDropped(StoreName)
    /// A store takes no further entries here. It keeps its last state, and what is dispatched to it
    /// fails with `DispatchError.Code.storeStopped`. Either it stopped before an entry: one that a
    /// newer program wrote, or one that this program died of before
    /// (``NodeSettings/crashJournal``). Or, without a number, it could not be opened again after its
    /// history was lost, and is hosted no longer.
    case storeStopped(StoreName, at: SequenceNumber?, message: String)
    /// Replicas of a store differ, this one among them or not (rule 22).
    case diverged(StateDivergence)
    /// Something about the crash journal that whoever runs the program should know: a damaged one
    /// was set aside, or it has no place for a store.
    case crashJournal(message: String)
    /// A bridged state could not be bridged again after its history was lost. Global dispatches of
    /// it fail with `DispatchError.Code.storeStopped` until it is bridged or unbridged.
    case bridgeStopped(Name, message: String)
    /// A frame could not be read, and was ignored.
    case unreadableFrame(String)
    /// The node has ended; nothing follows.
    case closed(message: String)

    /// What the machine reports, in the words of a node.
    static func protocolEvent(_ event: ReplicaEvent) -> NodeEvent {
        switch event {
        case .joined(let log, let epoch, let incarnation): .joined(log, epoch, incarnation)
        case .disconnected: .disconnected
        case .reconnected(let epoch): .reconnected(epoch)
        case .staleSequencer(let epoch): .staleSequencer(epoch)
        case .historyLost(let from, let through): .historyLost(from: from, through: through)
        case .sessionForgotten: .sessionForgotten
        case .missed(let from, let through): .missed(from: from, through: through)
        case .notAllowed(let message): .connectionRefused(message: message)
        case .notServing(let message): .sequencerNotServing(message: message)
        case .damaged(let damage):
            .logDamaged(from: damage.first, through: damage.last, message: damage.message)
        }
    }
}

/// How a node is, at one moment.
public struct NodeStatus: Sendable, Hashable {
    /// The node's name, if it has one.
    public var name: Name?
    /// Whether it has a session with a sequencer that is heard of.
    public var isConnected: Bool
    /// The log's id; nil before the first welcome.
    public var log: LogID?
    /// The epoch of the last welcome.
    public var epoch: Epoch
    /// The node's identity in the log.
    public var incarnation: Incarnation
    /// The last committed number that the node has heard of.
    public var last: SequenceNumber
    /// The number up to which every replica here has applied.
    public var applied: SequenceNumber
    /// How many dispatched actions have no outcome yet, besides those in the outbox.
    public var unsettled: UInt64
    /// The stores that the node hosts.
    public var stores: [StoreName]
}
