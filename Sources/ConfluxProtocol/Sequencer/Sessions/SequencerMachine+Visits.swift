import ConfluxVocabulary

/// Visits: the sessions of nodes that dispatch without joining. The one place of rule 42.
///
/// **The problem.** Who dispatches one action and ends needs no presence, and should not wait for the
/// log twice: once for a session and once for the action. But an action that stands in the log under
/// a session that its node doesn't know yet could be admitted again, by a copy of the same message that
/// comes when its session is forgotten.
///
/// **The answer.** The welcome of a visitor comes at once and makes no entry. It names `last`, and whatever
/// the visitor says from then on can only begin a session behind that number. Its first batch brings the
/// `visited` entry with it, in one commit:
///
///     visitor            sequencer                      log
///     hello ───────────▶ nothing is remembered
///       ◀─────── welcome, last 41
///     visit, since 41 ─▶ visited 42, action 43 ───────▶ one append
///       ◀─────── receipt ◀──────────────────────────────
///
/// A visit that is not remembered never began, unless one that began behind `since` was forgotten:
/// then nobody knows, and its node is told so. So no clock decides, and what is remembered is bounded.
/// The epoch in the header sees to the rest: what is said for another tenure is not heard, so that
/// nothing that was told as rejected is judged again (rule 33).
///
/// A visit has no presence: nothing is logged, or waited for, when its node goes.
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
    /// - Returns: Its incarnation; nil if there is none, and the node was told why.
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
            guard !isLogNearlyFull, pipeline.hasRoom(bytes: bytes) else {
                discard(expecting: visit.settled + 1, .full, connection, into: &effects)
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
