import ConfluxVocabulary

/// The questions how claims for leases stand.
///
/// An answer counts only if the log has confirmed, since the question came, that no newer term has begun. Otherwise a
/// superseded sequencer could say that a lease is held, and the next one does not know that it heard of the holder.
///
/// *Invariant*: there is one question for each claim at most, by the claim's own session. So the bound of claims bounds
/// the questions, too, and each key has its share of them.
struct ClaimQuestions: Sendable {
    private struct Waiting: Sendable {
        var asker: ConnectionID
        /// The asker's number for it.
        var number: UInt64
        var untilHeld: Bool
        /// How many confirmations had begun when it came.
        var confirmations: UInt64
    }

    private var waiting: [SequenceNumber: Waiting] = [:]
    /// The claims of which the answer may be known. *Use*: a question that waits costs nothing.
    private var answered: Set<SequenceNumber> = []
    /// How many confirmations have begun. *Use*: the last one answers what came before it.
    private var confirmations: UInt64 = 0

    /// Keeps a question, in place of a former one about the same claim.
    mutating func keep(
        _ claim: SequenceNumber, untilHeld: Bool, number: UInt64, from asker: ConnectionID,
        isAnswered: Bool
    ) {
        if isAnswered { answered.insert(claim) }
        waiting[claim] = Waiting(
            asker: asker, number: number, untilHeld: untilHeld, confirmations: confirmations)
    }

    /// It is decided how some claims stand.
    mutating func note(_ decided: [SequenceNumber]) {
        for claim in decided where waiting[claim] != nil { answered.insert(claim) }
    }

    /// Whether any question may have an answer.
    var haveAnswers: Bool { !answered.isEmpty }

    mutating func beginConfirmation() { confirmations += 1 }

    /// The log has confirmed the term.
    ///
    /// - Parameter answer: Returns how a claim stands; nil if the question waits on.
    /// - Returns: The answers to send, and to whom.
    mutating func endConfirmation(
        _ answer: (_ claim: SequenceNumber, _ untilHeld: Bool) -> LeaseState?
    ) -> [(Answer, ConnectionID)] {
        answered.sorted().compactMap { claim in
            guard let question = waiting[claim], question.confirmations < confirmations else {
                return nil
            }
            answered.remove(claim)
            guard let state = answer(claim, question.untilHeld) else { return nil }
            waiting[claim] = nil
            let answer = Answer(
                number: question.number, body: .lease(state))
            return (answer, question.asker)
        }
    }
}
