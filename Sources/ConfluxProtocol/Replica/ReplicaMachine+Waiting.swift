import ConfluxVocabulary

/// Waiting until this node has applied a number: the sequencer's latest (rule 29), that of the entry by which a store
/// is dropped (rule 16), or a receipt's (P6). A freeze or a skip waits like a drop.
///
///     asking ── the sequencer names a number ──▶ delivered to the applier, and forgotten here
///
/// A wait without a number is asked for again after a while, and in each new term: only a number that was confirmed
/// after the question counts. A receipt has its number already. If it is of the node's own term, its number is
/// known to be in the node's history. Otherwise the sequencer is asked as for its latest number, since the node may
/// still have a history that the log has lost.
///
/// If the node itself asks (``askForLast(at:into:)``), nobody is notified. Since it asks again and again, the answer
/// says nothing about other answers that the node is owed.
extension ReplicaMachine {
    /// A wait whose number is not known yet.
    struct Waiter: Sendable {
        /// The question for the sequencer.
        var question: NodeMessage
        /// When it was last asked, or would have been asked with a session.
        var askedAt: Duration
        /// The receipt that is waited for; nil if the wait is for the number that the sequencer
        /// names.
        var receipt: Receipt?
    }

    private func say(_ question: Question, into effects: inout [ReplicaEffect]) {
        var question = question
        question.acknowledged = acknowledged
        effects.append(.send(.question(question)))
    }

    /// Asks other nodes, or the sequencer. Without a session, the question waits for it.
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
                        number: question.number, body: .failed(.tableFull, message: text))))
            return
        }
        unasked.append(question)
    }

    mutating func ask(
        _ question: NodeMessage, _ request: UInt64, for receipt: Receipt? = nil, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        guard admit(request, into: &effects) else { return }
        let waiter = Waiter(question: question, askedAt: now, receipt: receipt)
        guard !end(waiter, request, into: &effects) else { return }
        if !isAnswerDue { owedSince = now }
        waiters[request] = waiter
        if phase == .joined { effects.append(.send(question)) }
    }

    mutating func awaitReceipt(
        _ receipt: Receipt, _ request: UInt64, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        ask(.barrier(Barrier(request: request)), request, for: receipt, at: now, into: &effects)
    }

    /// How many waits there are, except for the node's own.
    var waiterCount: Int { waiters.count - (waiters[Self.ownRequest] == nil ? 0 : 1) }

    private mutating func admit(
        _ request: UInt64, into effects: inout [ReplicaEffect]
    ) -> Bool {
        guard waiterCount >= settings.waitersMax, request != Self.ownRequest else { return true }
        let text = "the node has \(waiterCount) waits under way; wait for some of them first"
        effects.append(
            .deliver(.reach(request: request, .failed(.tableFull, message: text))))
        return false
    }

    mutating func take(
        _ confirmed: Confirmed, into effects: inout [ReplicaEffect]
    ) {
        guard let waiter = waiters.removeValue(forKey: confirmed.request) else { return }
        switch confirmed.outcome {
        case .failed where confirmed.request == Self.ownRequest: break
        case .failed(let code, let message):
            effects.append(
                .deliver(.reach(request: confirmed.request, .failed(code, message: message))))
        case .confirmed(let last):
            remoteLast = max(remoteLast, last)
            hear(of: last, into: &effects)
            // As with a receipt: if the log loses this number, whoever waits for it must learn so.
            remember(log, last, of: epoch)
            guard confirmed.request != Self.ownRequest else { return }
            let due = waiter.receipt?.sequence ?? last
            effects.append(.deliver(.reach(request: confirmed.request, .due(due))))
        }
    }

    /// A new term has begun, or the same one continues after a break: asks again for what has no
    /// number.
    mutating func askAgain(at now: Duration, into effects: inout [ReplicaEffect]) {
        for question in unasked { say(question, into: &effects) }
        unasked = []
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            guard !end(waiter, request, into: &effects) else { continue }
            askAgain(waiter, request, at: now, into: &effects)
        }
    }

    private mutating func askAgain(
        _ waiter: Waiter, _ request: UInt64, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        waiters[request]?.askedAt = now
        effects.append(.send(waiter.question))
    }

    /// The log lost the lives that these drops are to end, and others may get their numbers.
    mutating func giveUpDrops(
        above agreed: SequenceNumber, into effects: inout [ReplicaEffect]
    ) {
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            guard case .drop(let drop) = waiter.question, drop.life > agreed else { continue }
            waiters[request] = nil
            let text = "the log lost the life of \(drop.store) that was to end"
            effects.append(.deliver(.reach(request: request, .failed(.otherLife, message: text))))
        }
    }

    /// Asks again what is overdue: the question or the answer may have been lost.
    mutating func askOverdue(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard let due = waitDeadline, now >= due else { return }
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key })
        where now >= waiter.askedAt + settings.answerPatience {
            askAgain(waiter, request, at: now, into: &effects)
        }
    }

    /// When the next question is overdue; nil if nobody waits.
    var waitDeadline: Duration? {
        waiters.values.lazy.map(\.askedAt).min().map { $0 + settings.answerPatience }
    }

    var isConfirmationDue: Bool { waitDeadline != nil }

    /// Ends the wait for a receipt of another log, which will never be applied here, and for a receipt of the node's
    /// own term, which needs no question.
    ///
    /// - Returns: Whether the wait has ended.
    private mutating func end(
        _ waiter: Waiter, _ request: UInt64, into effects: inout [ReplicaEffect]
    ) -> Bool {
        guard let receipt = waiter.receipt, let present = welcome?.log else { return false }
        let isOfOtherLog = receipt.log != present
        guard isOfOtherLog || receipt.epoch == epoch else { return false }
        waiters[request] = nil
        // The receipt shows how far the log has come.
        if !isOfOtherLog { hear(of: receipt.sequence, into: &effects) }
        effects.append(
            .deliver(
                .reach(
                    request: request, isOfOtherLog ? .otherLog(present) : .due(receipt.sequence))))
        return true
    }
}
