import ConfluxProtocol
import ConfluxVocabulary

/// Questions what an entry did, as a dispatch asks them that hosts no store and wants to know.
extension SimulatedCluster {
    /// The program asks what one of the newest entries did.
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
        node.tells.inputs.withLock { $0.append(.ask(question)) }
        schedule(.tell(process: node.process), after: .zero)
    }

    /// What is said of an entry is true (P5): some replica has come to it, and took or refused it.
    func hearEffect(_ answer: Answer, _ node: SimulatedNode) throws(Violation) {
        guard let question = node.effectQuestions.removeValue(forKey: answer.number),
            // What the log has lost since nobody can see.
            question.histories == truth.former.count
        else { return }
        let isRefused: Bool
        switch answer.body {
        case .applied: isRefused = false
        case .refused: isRefused = true
        default: return
        }
        marks.hit(isRefused ? .refusalTold : .effectTold)
        guard truth.mayHave(question.sequence, refused: isRefused) else {
            throw Violation(
                promise: "P5",
                message:
                    "\(node.text) was told that entry \(question.sequence) for \(question.target) was "
                    + "\(isRefused ? "refused" : "applied"), and it was not")
        }
    }
}

/// An entry whose effect was asked for.
struct EffectQuestion {
    var sequence: SequenceNumber
    var target: Target
    /// How often the log had lost its end when it was asked.
    var histories: Int
}
