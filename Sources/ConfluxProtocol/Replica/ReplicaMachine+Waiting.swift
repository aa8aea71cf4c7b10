import ConfluxVocabulary

/// Who waits until this node has applied a number: the sequencer's latest (rule 29), that of the entry
/// by which a store is dropped (rule 16), or a receipt's (P6).
///
///     asking ── the sequencer names a number ──▶ delivered to the applier, and forgotten here
///
/// What has no number is asked again after a while, and in each new tenure: only a number that was
/// confirmed behind the question counts.
extension ReplicaMachine {
    /// Somebody whose number is not known yet.
    enum Waiter: Sendable {
        /// The sequencer is to name it. When it was asked last.
        case asking(NodeMessage, at: Duration)
        /// It is a receipt's, and whether that is of this log is known behind the first welcome.
        case receipt(SequenceNumber, LogID)
    }

    private func say(_ question: Question, into effects: inout [ReplicaEffect]) {
        var question = question
        question.acknowledged = acknowledged
        effects.append(.send(.question(question)))
    }

    /// Asks other nodes, or the sequencer. Before the session is there the question waits for it.
    mutating func ask(_ question: Question, into effects: inout [ReplicaEffect]) {
        guard phase != .joined else {
            say(question, into: &effects)
            return
        }
        guard unasked.count < settings.waitersMax else {
            let text = "the node has \(unasked.count) questions that wait for its session"
            effects.append(
                .answered(
                    Answer(
                        number: question.number, isLast: true, node: nil,
                        body: .failed(.tableFull, message: text))))
            return
        }
        unasked.append(question)
    }

    mutating func ask(
        _ question: NodeMessage, _ request: UInt64, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        guard admit(request, into: &effects) else { return }
        if !isAnswerDue { owedSince = now }
        waiters[request] = .asking(question, at: now)
        if phase == .joined { effects.append(.send(question)) }
    }

    mutating func awaitReceipt(
        _ sequence: SequenceNumber, of log: LogID, _ request: UInt64,
        into effects: inout [ReplicaEffect]
    ) {
        guard admit(request, into: &effects) else { return }
        waiters[request] = .receipt(sequence, log)
        nameReceipts(into: &effects)
    }

    private mutating func admit(
        _ request: UInt64, into effects: inout [ReplicaEffect]
    ) -> Bool {
        guard waiters.count >= settings.waitersMax else { return true }
        let text = "the node has \(waiters.count) waits under way; wait for some of them first"
        effects.append(
            .deliver(.reach(request: request, .failed(.tableFull, message: text))))
        return false
    }

    mutating func take(
        _ confirmed: Confirmed, into effects: inout [ReplicaEffect]
    ) {
        guard case .asking? = waiters.removeValue(forKey: confirmed.request) else { return }
        switch confirmed.outcome {
        case .failed(let code, let message):
            effects.append(
                .deliver(.reach(request: confirmed.request, .failed(code, message: message))))
        case .confirmed(let last):
            remoteLast = max(remoteLast, last)
            effects.append(.deliver(.reach(request: confirmed.request, .due(last))))
        }
    }

    /// A new tenure, or the same one after a break: what has no number is asked again.
    mutating func askAgain(at now: Duration, into effects: inout [ReplicaEffect]) {
        nameReceipts(into: &effects)
        for question in unasked { say(question, into: &effects) }
        unasked = []
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            guard case .asking(let question, _) = waiter else { continue }
            waiters[request] = .asking(question, at: now)
            effects.append(.send(question))
        }
    }

    /// The log lost the lives that these are to end: others may get their numbers.
    mutating func giveUpDrops(
        above agreed: SequenceNumber, into effects: inout [ReplicaEffect]
    ) {
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            guard case .asking(.drop(let drop), _) = waiter, drop.life > agreed else { continue }
            waiters[request] = nil
            let text = "the log lost the life of \(drop.store) that was to end"
            effects.append(.deliver(.reach(request: request, .failed(.otherLife, message: text))))
        }
    }

    /// Question or answer may have been lost.
    mutating func askOverdue(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard let due = waitDeadline, now >= due else { return }
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            guard case .asking(let question, let askedAt) = waiter,
                now >= askedAt + settings.answerPatience
            else { continue }
            waiters[request] = .asking(question, at: now)
            effects.append(.send(question))
        }
    }

    /// When something is to be asked again, first.
    var waitDeadline: Duration? {
        waiters.values.lazy.compactMap { waiter in
            guard case .asking(_, let askedAt) = waiter else { return nil }
            return askedAt + settings.answerPatience
        }.min()
    }

    var isConfirmationDue: Bool { waitDeadline != nil }

    /// A receipt of another log than the node's will never be applied here.
    private mutating func nameReceipts(into effects: inout [ReplicaEffect]) {
        guard let present = welcome?.log else { return }
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            guard case .receipt(let sequence, let log) = waiter else { continue }
            waiters[request] = nil
            effects.append(
                .deliver(
                    .reach(
                        request: request, log == present ? .due(sequence) : .otherLog(present))))
        }
    }
}
