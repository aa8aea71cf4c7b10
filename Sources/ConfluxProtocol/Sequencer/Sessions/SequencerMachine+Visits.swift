import ConfluxVocabulary

/// Visits: the sessions of nodes that dispatch without joining. Rule 42 is implemented here.
///
/// **The problem.** A node that dispatches one action and ends needs no presence. It should not
/// wait for the log twice, once for a session and once for the action. But suppose an action is in
/// the log under a session that its node does not know yet. Then a copy of the same message could
/// be admitted again, if it arrives after the session was forgotten.
///
/// **The answer.** A visitor gets its welcome at once, without an entry. The welcome names `last`,
/// and whatever the visitor sends after it can only begin a session after that number. Its first
/// batch brings the `visited` entry along, in the same commit:
///
///     visitor            sequencer                      log
///     hello ───────────▶ nothing is remembered
///       ◀─────── welcome, last 41
///     visit, since 41 ─▶ visited 42, action 43 ───────▶ one append
///       ◀─────── receipt ◀──────────────────────────────
///
/// A visit that is not remembered never began, unless a visit that began after `since` was
/// forgotten. In that case nobody knows, and the node is told so. So no clock decides, and what is
/// remembered is bounded. The epoch in the header does the rest: a message for another tenure is
/// refused, so a counter that was reported as rejected is never judged again (rule 33).
///
/// A visit has no presence: when its node leaves, nothing is logged and nobody waits.
extension SequencerMachine {
    mutating func visit(
        _ visit: Visit, on connection: ConnectionID, as principal: Principal, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        let bytes = visit.batch.isVoid ? 0 : visit.batch.encoded.count
        guard
            let incarnation = beginVisit(
                visit.session, bytes: bytes, on: connection, as: principal, into: &effects)
        else { return }
        submit(
            visit.batch, by: incarnation, on: connection, as: principal, at: now, into: &effects)
    }

    /// Finds the session of a visit, or begins it.
    ///
    /// - Returns: Its incarnation; nil if there is none, in which case the node was told why.
    mutating func beginVisit(
        _ visit: Visit.Session, bytes: Int, on connection: ConnectionID, as principal: Principal,
        into effects: inout [SequencerEffect]
    ) -> Incarnation? {
        let nonce = visit.nonce.owned(by: principal.name)
        let incarnation: Incarnation
        if let found = sessions.incarnation(of: nonce), sessions[found]?.presence == .visit {
            incarnation = found
        } else {
            guard sessions.incarnation(of: nonce) == nil, joining[nonce] == nil,
                sessions.forgottenVisit.rawValue <= visit.since.rawValue
            else {
                let text = "the visit may have been forgotten: look at the log"
                effects.append(.send(.bye(Bye(code: .forgotten, message: text)), to: connection))
                return nil
            }
            // Without an action, only the session's own entry is logged.
            guard bytes == 0 || !isLogNearlyFull, pipeline.hasRoom(bytes: bytes) else {
                discard(
                    expecting: visit.settled + 1, .full, because: words(holdingUp: nil),
                    connection, into: &effects)
                return nil
            }
            let sequence = pipeline.admit(
                .visited(nonce: nonce), by: principal.name, then: .visited)
            incarnation = Incarnation(sequence.rawValue)
            sessions.begin(
                Session(visit: incarnation, nonce: nonce, owner: principal.name),
                keeping: settings.visitsMax)
        }
        sessions.reach(incarnation, by: connection)
        sessions.change(incarnation) { $0.settle(through: visit.settled) }
        return incarnation
    }
}
