import ConfluxProtocol

/// Questions that this node can't answer yet. Each expires with its patience, as it does in the
/// sequencer. Their number is bounded: a new one replaces the oldest.
struct PendingQuestions {
    private struct Pending {
        var question: Question
        var deadline: Duration
    }

    /// As many as a sequencer forwards by default, so that no asker takes the places of others here.
    private static let countMax = 4_096
    private var pending: [Pending] = []

    mutating func add(_ question: Question, at now: Duration) {
        if pending.count >= Self.countMax { pending.removeFirst() }
        pending.append(Pending(question: question, deadline: now + question.patience))
    }

    /// Tries to answer each of them, and removes those that are answered or expired.
    mutating func answer(at clock: () -> Duration, _ isAnswered: (Question) -> Bool) {
        guard !pending.isEmpty else { return }
        let now = clock()
        pending.removeAll { $0.deadline < now || isAnswered($0.question) }
    }
}
