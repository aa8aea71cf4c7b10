import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// A lease that a process of a simulation holds, or held once.
public struct SimulatedLease: Hashable, Sendable {
    /// The number and the epoch of the entry that claimed it.
    let claim: StoreVersion

    /// The number of the entry that claimed it, which rises from one holder to the next.
    public var token: SequenceNumber { claim.sequence }
}

extension SimulatedProcess {
    /// The lease of a name, if this process holds it. If this process has not claimed it, or its claim has ended, it claims
    /// it now, and holds it in a later call at the earliest.
    ///
    /// As with `Lease.isHeld`, the process can only know what it was told. Dispatch what must not happen after the end by
    /// ``dispatch(_:to:named:under:)``.
    ///
    /// - Parameter name: The name of the lease, as for `Node.lease(_:within:)`.
    /// - Returns: The lease; nil while this process does not hold it.
    public mutating func lease(_ name: String) -> SimulatedLease? {
        if let claim = own.claims[name] {
            return claim.held(at: cluster.now)
        }
        guard let store = StoreName(name) else {
            preconditionFailure("\(name) is no name for a lease")
        }
        let handle = node.outbox.submit(.claim(store, locks: false))
        own.claims[name] = ProgramClaim(cluster.note(handle, node))
        return nil
    }

    /// Gives up the lease of a name, or the claim for it.
    ///
    /// - Parameter name: The name of the lease.
    public mutating func release(_ name: String) {
        guard let claim = own.claims.removeValue(forKey: name) else { return }
        own.abandoned.append(claim)
        cluster.endClaims(own, node)
    }
}

/// A program's claim for a lease: what a `Lease` and the task that watches it are in production.
final class ProgramClaim {
    private let record: DispatchRecord
    /// The claim's entry; nil as long as it has no receipt.
    private var claim: StoreVersion?
    /// Until then, the sequencer can't have given the lease to another; nil as long as it was never held.
    private var heldUntil: Duration?
    /// The question under way, and when it was asked.
    private(set) var question: (number: UInt64, asked: Duration)?
    private var nextQuestionAt = Duration.zero
    /// Whether it has ended, so that there is nothing to give up.
    private(set) var isOver = false

    /// How long a question waits, and how long a process waits before it asks a sequencer again that did not answer.
    private static let (patience, pause) = (Duration.seconds(1), Duration.milliseconds(100))

    init(_ record: DispatchRecord) { self.record = record }

    func held(at now: Duration) -> SimulatedLease? {
        guard let claim, let heldUntil, now < heldUntil else { return nil }
        return SimulatedLease(claim: claim)
    }

    /// The process hears of its receipt.
    ///
    /// - Returns: The claim, once it is in the log.
    func settle() -> StoreVersion? {
        switch record.outcome {
        case .committed(let receipt), .ordered(let receipt, _):
            claim = StoreVersion(sequence: receipt.sequence, epoch: receipt.epoch)
        case .failed: isOver = true
        case nil: break
        }
        return claim
    }

    /// Whether the time has ended for which it was surely held.
    func hasLapsed(at now: Duration) -> Bool { heldUntil.map { $0 <= now } ?? false }

    /// The next question, if it is time for it.
    func ask(_ number: @autoclosure () -> UInt64, at now: Duration) -> Question? {
        // A question is lost with the sequencer.
        if let asked = question?.asked, now < asked + Self.patience * 2 { return nil }
        guard let claim, now >= nextQuestionAt else { return nil }
        let question = Question(
            number: number(), patience: Self.patience,
            body: .lease(claim, untilHeld: heldUntil == nil))
        self.question = (question.number, now)
        return question
    }

    /// The process hears an answer.
    func hear(_ answer: Answer.Body, at now: Duration) {
        guard let asked = question?.asked else { return }
        question = nil
        guard case .lease(let state) = answer else {
            nextQuestionAt = now + Self.pause
            return
        }
        switch state {
        case .held(let silenceMax):
            // If the question was asked long ago, most of the time for which the lease is surely held is over.
            guard heldUntil != nil || now < asked + silenceMax / 4 else { return }
            heldUntil = max(heldUntil ?? .zero, asked + silenceMax * 7 / 8)
            nextQuestionAt = now + silenceMax / 8
        case .waiting where heldUntil == nil: break
        case .waiting, .over: isOver = true
        }
    }
}

extension SimulatedCluster {
    /// Does for the leases of a program what tasks do in production: asks how its claims stand, and gives up what it can't
    /// be sure of.
    func tendClaims(_ own: ProgramRun, _ node: SimulatedNode) {
        for (name, claim) in own.claims.sorted(by: { $0.key < $1.key }) {
            _ = claim.settle()
            if claim.isOver || claim.hasLapsed(at: now) {
                own.claims[name] = nil
                own.abandoned.append(claim)
            } else if let question = claim.ask(takeNumber(), at: now) {
                if case .lease(let claim, _) = question.body {
                    claimQuestions[question.number] = claim
                }
                ask(question, node)
            }
        }
        endClaims(own, node)
    }

    /// Gives up the claims that are not wanted any more, once they are in the log.
    func endClaims(_ own: ProgramRun, _ node: SimulatedNode) {
        own.abandoned.removeAll { claim in
            guard let place = claim.settle() else { return claim.isOver }
            note(node.outbox.submit(.release(place)), node)
            return true
        }
    }

    /// The process hears how a claim of its program stands.
    func hearLease(_ answer: Answer, _ node: SimulatedNode) {
        let claims = node.run?.claims.values
        claims?.first { $0.question?.number == answer.number }?.hear(answer.body, at: now)
    }
}
