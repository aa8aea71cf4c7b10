import ConfluxVocabulary

/// What happens to a node.
public enum ReplicaInput: Sendable {
    /// Begin: say hello. The first input.
    case start
    /// The connection to the sequencer was made anew: what was on its way is lost.
    case reconnected
    /// A message of the sequencer arrived. `epoch` is the speaker's, from the header.
    case received(SequencerMessage, epoch: Epoch)
    /// A commit arrived on the feed.
    case fed(Commit, byteCount: Int, epoch: Epoch)
    /// A beat arrived on the feed.
    case beaten(Beat, epoch: Epoch)
    /// Application threads dispatched these; only while `ReplicaMachine.canSubmit`.
    case dispatched(BatchBuilder, isAtomic: Bool)
    /// Host a store, or bridge a state. Answered by ``Delivery/opened(request:_:)``.
    case open(Open)
    /// Host it no longer.
    case close(HostingSubject)
    /// Deliver every commit from this number on, whatever is hosted.
    case follow(from: SequenceNumber)
    /// Ask; answered by ``ReplicaEffect/answered(_:)``.
    case ask(Question)
    /// Answer a question of ``ReplicaEffect/asked(_:)``.
    case answer(Answer)
    /// Everything delivered up to this number is applied, and so many bytes of it are done with.
    case applied(SequenceNumber, bytes: Int)
    /// ``ReplicaMachine/nextDeadline`` has come.
    case tick
    /// Leave. The last input.
    case leave
}
