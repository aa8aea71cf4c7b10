import ConfluxVocabulary

/// What people and programs did that changes what an upgrade may be.
final class Replays {
    /// The lives of stores whose newer programs somebody allowed to judge entries again.
    var lives: Set<SequenceNumber> = []
    /// The states that programs with nondeterministic migrations have made.
    var differing: Set<Digest> = []
    /// The stores that can't be opened, since the log is damaged: no program is kept for them.
    var damaged: Set<StoreName> = []
    /// Whether a store has such a state, since no other program was there. Then nothing is promised.
    var isMisled = false
}
