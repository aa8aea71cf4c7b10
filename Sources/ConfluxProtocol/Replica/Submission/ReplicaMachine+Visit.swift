import ConfluxVocabulary

/// A visitor's side of the protocol: it dispatches without joining (rule 42).
extension ReplicaMachine {
    /// Notes where the session begins: behind the lowest `last` of all welcomes. A log that lost its end gives the
    /// numbers behind that again.
    mutating func visit(_ welcome: Welcome) {
        visitSince = min(visitSince ?? welcome.last, welcome.last)
    }

    /// The message that submits a batch.
    func submission(of batch: Batch) -> NodeMessage {
        guard let visitSince else { return .submit(batch) }
        let session = Visit.Session(
            nonce: nonce, since: visitSince, settled: submissions.reported)
        return .visit(Visit(session: session, batch: batch))
    }

    /// A visitor has only one session. It ends, and what has no outcome has an unknown one.
    mutating func loseVisit(into effects: inout [ReplicaEffect]) {
        effects.append(.event(.sessionForgotten))
        let text =
            "the sequencer does not remember this visit, so actions without an outcome can't be "
            + "dispatched again; look at the log"
        end(.refused(.forgotten, message: text), into: &effects)
    }
}
