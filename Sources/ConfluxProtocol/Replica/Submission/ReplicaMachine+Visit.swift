import ConfluxVocabulary

/// A visitor's part: it dispatches without joining (rule 42).
extension ReplicaMachine {
    /// The session begins behind the lowest `last` that it was welcomed with: a log that lost its end
    /// gives the numbers behind that again.
    mutating func visit(_ welcome: Welcome) {
        visitSince = min(visitSince ?? welcome.last, welcome.last)
    }

    /// What submits a batch.
    func submission(of batch: Batch) -> NodeMessage {
        guard let visitSince else { return .submit(batch) }
        let session = Visit.Session(
            nonce: nonce, since: visitSince, settled: submissions.reported)
        return .visit(Visit(session: session, batch: batch))
    }

    /// A visitor is of one session: what has no outcome has none that can be known.
    mutating func loseVisit(into effects: inout [ReplicaEffect]) {
        effects.append(.event(.sessionForgotten))
        let text =
            "the sequencer does not remember this visit, so that what has no outcome can't be "
            + "dispatched again; look at the log"
        end(.refused(.forgotten, message: text), into: &effects)
    }
}
