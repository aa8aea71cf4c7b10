import Conflux
import ConfluxProtocol

/// What the thread that applies works on, one after the other.
enum ApplyJob: Sendable {
    /// The machine's word, in its order.
    case deliver(Delivery, log: LogID)
    /// These actions of this node are on their way under these counters.
    case submitted(firstCounter: UInt64, count: Int, OutcomeBlock)
    /// A batch that was never submitted, and never will be.
    case abandoned(OutcomeBlock, count: Int)
    /// Host a store, or bridge a state, once the sequencer agrees.
    case register(Registration)
    /// Host it no longer.
    case unregister(HostingSubject)
    /// Answer a question about a store here.
    case asked(Question)
    /// A commit is applied in every store, some of them on threads of their own.
    case finished
    /// The node's own identity in the log, by which it knows its own entries.
    case identified(Incarnation)
    /// The last one.
    case stop
}

/// A store that is to be hosted, or a state that is to be bridged.
// Sendable: handed over once, and then confined to the thread that applies.
final class Registration: @unchecked Sendable {
    /// What the sequencer is asked for.
    let open: Open
    /// Makes the applier of the state, if there is none.
    let makeApplier: () -> StateApplier
    /// Puts the replica into it; nothing for a bridge.
    let attach: (StateApplier) -> Void
    /// Told once, when the store is current, or could not be opened.
    let completion: (Result<SequenceNumber, NodeError>) -> Void

    init(
        open: Open, makeApplier: @escaping () -> StateApplier,
        attach: @escaping (StateApplier) -> Void,
        completion: @escaping (Result<SequenceNumber, NodeError>) -> Void
    ) {
        self.open = open
        self.makeApplier = makeApplier
        self.attach = attach
        self.completion = completion
    }

    var request: UInt64 { open.request }
    var subject: HostingSubject { open.subject }
    var state: Name {
        switch subject {
        case .store(let store): store.state
        case .state(let state): state
        }
    }
}
