import ConfluxProtocol
import ConfluxVocabulary

/// The first place at which a replay differs from what is expected.
package struct ReplayFinding: Sendable {
    /// The store.
    package let store: StoreName
    /// The entries that concerned the store, of which one made the difference.
    package let entries: ClosedRange<SequenceNumber>
    /// How many these are.
    package let count: Int
    /// The action of the last of them, if it is at hand.
    package let action: (row: BatchTarget, payload: Bytes)?
    /// The place in the state, if whole states were compared.
    package let path: String?
    /// What was expected there.
    package let expected: String
    /// What the code at hand made of it.
    package let found: String
}

/// What a replay found.
package struct ReplayOutcome: Sendable {
    /// How many actions were applied or refused. An action for several stores counts once.
    package internal(set) var actionCount: UInt64 = 0
    /// How many times an action had no effect on a store.
    package internal(set) var refusalCount: UInt64 = 0
    /// How many times a store's state was compared, or recorded.
    package internal(set) var stateCount: UInt64 = 0
    /// The last entry that was applied.
    package internal(set) var last = SequenceNumber.zero
    /// The states whose recorded digests were not compared: this program understands no version that was in force.
    package internal(set) var uncompared: Set<Name> = []
    /// The first difference; nil if there is none.
    package internal(set) var finding: ReplayFinding?
}
