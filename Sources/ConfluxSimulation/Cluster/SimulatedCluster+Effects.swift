import ConfluxProtocol
import ConfluxVocabulary

/// Asks for the effect of an entry, as a dispatch does whose node does not host the store.
extension SimulatedCluster {
    /// The program asks for the effect of one of the newest entries.
    func askEffect(_ node: SimulatedNode) {
        let back = UInt64(random.int(in: 0...12))
        guard disk.last.rawValue > back else { return }
        let sequence = SequenceNumber(disk.last.rawValue - back)
        guard let target = truth.branch.fact(sequence)?.record?.target else { return }
        let question = Question(
            number: takeNumber(), patience: random.duration(in: .milliseconds(5)...(.seconds(2))),
            body: .applied(sequence, target))
        node.effectQuestions[question.number] = EffectQuestion(
            sequence: sequence, target: target, histories: truth.former.count)
        ask(question, node)
    }

    /// Checks the answer (P5): some replica must have reached the entry, and applied or refused it.
    func hearEffect(_ answer: Answer, _ node: SimulatedNode) throws(Violation) {
        guard let question = node.effectQuestions.removeValue(forKey: answer.number),
            // If the log has lost entries since, the answer can't be checked.
            question.histories == truth.former.count
        else { return }
        let isRefused: Bool
        switch answer.body {
        case .applied: isRefused = false
        case .refused: isRefused = true
        default: return
        }
        marks.hit(isRefused ? .refusalTold : .effectTold)
        try require(
            truth.mayHave(question.sequence, refused: isRefused), "P5",
            "\(node.text) was told that entry \(question.sequence) for \(question.target) was "
                + "\(isRefused ? "refused" : "applied"), and it was not")
    }
}

/// An entry whose effect was asked for.
struct EffectQuestion {
    var sequence: SequenceNumber
    var target: Target
    /// How often the log had lost its end when the question was asked.
    var histories: Int
}
