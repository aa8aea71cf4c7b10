import ConfluxProtocol

/// Questions that this node can't answer yet. Each ends with its patience, as the sequencer ends
/// it; their number is bounded, and the oldest is given up for a new one.
struct PendingQuestions {
    private struct Pending {
        var question: Question
        var deadline: Duration
    }

    private static let countMax = 1_024
    private var pending: [Pending] = []

    mutating func add(_ question: Question, at now: Duration) {
        if pending.count >= Self.countMax { pending.removeFirst() }
        pending.append(Pending(question: question, deadline: now + question.patience))
    }

    /// Tries each of them; those that are answered, or too old, are done with.
    mutating func answer(at clock: () -> Duration, _ isAnswered: (Question) -> Bool) {
        guard !pending.isEmpty else { return }
        let now = clock()
        pending.removeAll { $0.deadline < now || isAnswered($0.question) }
    }
}
