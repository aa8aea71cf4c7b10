import ConfluxVocabulary

@testable import ConfluxProtocol

extension SequencerMachine {
    /// Checks every bound of the settings (P7), and every invariant.
    mutating func checkBounds() {
        for bound in bounds { require(bound.level <= bound.most, "\(bound)") }
        do throws(BrokenInvariant) { try checkInvariants() } catch { require(false, "\(error)") }
        for session in sessions.all {
            require(
                session.ledger.pendingBytes <= Int(settings.windowBytes),
                "\(session.ledger.pendingBytes) bytes of \(session.incarnation) are pending")
            // One more batch, whose entries all have separate outcomes in the worst case.
            require(
                session.ledger.recordCount <= settings.unsettledOutcomesMax + 64,
                "\(session.ledger.recordCount) outcomes of \(session.incarnation)")
        }
    }
}
