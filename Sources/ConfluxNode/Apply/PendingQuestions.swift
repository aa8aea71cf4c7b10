import ConfluxProtocol

/// Questions that this node can't answer yet. Each ends when its patience is over, as it does at
/// the sequencer. Their number is bounded, and a new question displaces the oldest.
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

    /// Tries each question, and removes those that are answered or too old.
    mutating func answer(at clock: () -> Duration, _ isAnswered: (Question) -> Bool) {
        guard !pending.isEmpty else { return }
        let now = clock()
        pending.removeAll { $0.deadline < now || isAnswered($0.question) }
    }
}
