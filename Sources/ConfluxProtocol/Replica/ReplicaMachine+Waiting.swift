import ConfluxVocabulary

/// Waiting until this node has applied a number: the sequencer's latest (rule 29), that of the entry
/// by which a store is dropped (rule 16), or a receipt's (P6).
///
///     asked ── the sequencer names a number ──▶ due ── the replicas have it ──▶ told
///
/// What is asked is asked again after a while, and in each new tenure: only a number that was
/// confirmed behind the question counts.
extension ReplicaMachine {
    /// Who waits.
    struct Waiter: Sendable {
        enum Phase: Sendable, Equatable {
            /// The sequencer is to name the number. When it was asked last.
            case asked(at: Duration)
            /// The replicas are to apply this number.
            case due(SequenceNumber)
        }

        var phase: Phase
        /// What the sequencer is asked; nothing where the number is a receipt's.
        var question: NodeMessage?
        /// The log that a receipt is of.
        var log: LogID?
    }

    mutating func barrier(
        _ request: UInt64, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        ask(.barrier(Barrier(request: request)), request, at: now, into: &effects)
    }

    mutating func drop(_ drop: Drop, at now: Duration, into effects: inout [ReplicaEffect]) {
        ask(.drop(drop), drop.request, at: now, into: &effects)
    }

    mutating func ask(
        _ question: NodeMessage, _ request: UInt64, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        guard admit(request, into: &effects) else { return }
        if !isAnswerDue { owedSince = now }
        waiters[request] = Waiter(phase: .asked(at: now), question: question)
        if phase == .joined { effects.append(.send(question)) }
    }

    mutating func awaitReceipt(
        _ sequence: SequenceNumber, of log: LogID, _ request: UInt64,
        into effects: inout [ReplicaEffect]
    ) {
        guard admit(request, into: &effects) else { return }
        if let present = welcome?.log, present != log {
            effects.append(.deliver(.reached(request: request, .otherLog(present))))
            return
        }
        waiters[request] = Waiter(phase: .due(sequence), question: nil, log: log)
        releaseWaiters(into: &effects)
    }

    private mutating func admit(
        _ request: UInt64, into effects: inout [ReplicaEffect]
    ) -> Bool {
        guard waiters.count >= settings.waitersMax else { return true }
        let text = "the node has \(waiters.count) waits under way; wait for some of them first"
        effects.append(
            .deliver(.reached(request: request, .failed(.tableFull, message: text))))
        return false
    }

    mutating func take(
        _ confirmed: Confirmed, into effects: inout [ReplicaEffect]
    ) {
        guard case .asked? = waiters[confirmed.request]?.phase else { return }
        switch confirmed.outcome {
        case .failed(let code, let message):
            waiters[confirmed.request] = nil
            effects.append(
                .deliver(.reached(request: confirmed.request, .failed(code, message: message))))
        case .confirmed(let last):
            waiters[confirmed.request]?.phase = .due(last)
            remoteLast = max(remoteLast, last)
            releaseWaiters(into: &effects)
        }
    }

    /// A new tenure, or the same one after a break: everything is asked again, since another tenure
    /// may have given receipts meanwhile.
    mutating func askAgain(at now: Duration, into effects: inout [ReplicaEffect]) {
        checkLogs(into: &effects)
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            guard let question = waiter.question else { continue }
            waiters[request]?.phase = .asked(at: now)
            effects.append(.send(question))
        }
    }

    /// The log lost the lives that these are to end: others may get their numbers.
    mutating func giveUpDrops(
        above agreed: SequenceNumber, into effects: inout [ReplicaEffect]
    ) {
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            guard case .drop(let drop)? = waiter.question, drop.life > agreed else { continue }
            waiters[request] = nil
            let text = "the log lost the life of \(drop.store) that was to end"
            effects.append(.deliver(.reached(request: request, .failed(.otherLife, message: text))))
        }
    }

    /// Question or answer may have been lost.
    mutating func askOverdue(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard let due = waitDeadline, now >= due else { return }
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            guard case .asked(let askedAt) = waiter.phase, let question = waiter.question,
                now >= askedAt + settings.answerPatience
            else { continue }
            waiters[request]?.phase = .asked(at: now)
            effects.append(.send(question))
        }
    }

    /// When something is to be asked again, first.
    var waitDeadline: Duration? {
        waiters.values.lazy.compactMap { waiter in
            guard case .asked(let askedAt) = waiter.phase else { return nil }
            return askedAt + settings.answerPatience
        }.min()
    }

    var isConfirmationDue: Bool { waitDeadline != nil }

    /// A receipt of another log than the node's will never be applied here.
    private mutating func checkLogs(into effects: inout [ReplicaEffect]) {
        guard let present = welcome?.log else { return }
        for (request, waiter) in waiters.sorted(by: { $0.key < $1.key }) {
            guard let log = waiter.log, log != present else { continue }
            waiters[request] = nil
            effects.append(.deliver(.reached(request: request, .otherLog(present))))
        }
    }

    /// Tells who waits for numbers that the replicas have reached, behind the commits that reach
    /// them.
    mutating func releaseWaiters(into effects: inout [ReplicaEffect]) {
        guard !waiters.isEmpty, welcome != nil, let reached = reachedByAll else { return }
        var released: [(request: UInt64, sequence: SequenceNumber)] = []
        for (request, waiter) in waiters {
            guard case .due(let sequence) = waiter.phase, sequence <= reached else { continue }
            released.append((request, sequence))
        }
        for (request, sequence) in released.sorted(by: { $0.request < $1.request }) {
            waiters[request] = nil
            effects.append(.deliver(.reached(request: request, .reached(sequence))))
        }
    }

    /// The number up to which every replica here is delivered to; nil while one has no position.
    /// Where nothing is hosted there is nothing to wait for.
    private var reachedByAll: SequenceNumber? {
        guard feed != .unwanted else { return SequenceNumber(UInt64(Int64.max)) }
        guard opening.isEmpty, let live else { return nil }
        return min(live, catchUp?.cursor ?? live)
    }
}
