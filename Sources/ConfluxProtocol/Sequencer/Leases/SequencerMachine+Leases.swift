import ConfluxVocabulary

/// Leases: how claims are judged, and what is told of them.
extension SequencerMachine {
    // MARK: Entries

    /// Why a claim can't be admitted, or ended.
    ///
    /// - Parameters:
    ///   - request: The claim, or its end.
    ///   - claims: How many claims come before it in its batch.
    ///   - session: Who sent it.
    ///   - principal: The key of the connection.
    /// - Returns: Why; nil if it can.
    mutating func fault(
        of request: LeaseRequest, behind claims: Int, by session: Incarnation,
        as principal: Principal
    ) -> Fault? {
        switch request {
        case .claim(let name, let locks):
            // A lock makes others wait who have a right to dispatch.
            let permission = locks ? Rights.Permission.host : .dispatch
            guard principal.rights.allow(permission, .store(name)) else {
                return Fault(
                    code: .notAllowed, message: principal.denial(of: permission, Target.store(name))
                )
            }
            guard leases.hasRoom(for: principal.name, claims + 1) else {
                let text =
                    "\(leases.counts.total) claims for leases are held or wait, and no more are taken from this key; "
                    + "release some"
                return Fault(code: .tableFull, message: text)
            }
            return nil
        case .release(let version):
            guard !hasLost(version), let claim = leases[version.sequence] else {
                return Fault(code: .leaseLost, message: "the claim is over")
            }
            guard
                claim.session == session
                    || principal.rights.allow(.administer, .store(claim.name))
            else {
                return Fault(
                    code: .notAllowed,
                    message: "another session has the lease; "
                        + principal.denial(of: .administer, Target.store(claim.name)))
            }
            return nil
        }
    }

    /// Why an action under a lease can't be admitted.
    mutating func fault(ofActionUnder claim: StoreVersion) -> Fault? {
        let isThere = !hasLost(claim) && leases[claim.sequence] != nil
        guard !isThere || !leases.isHeld(claim.sequence) else { return nil }
        let text =
            isThere
            ? "the lease is not held yet: its claim waits for its turn; ask for the lease, and wait"
            : "the lease is lost: it was released, or the sequencer heard nothing of its session for too long; ask "
                + "for it again"
        return Fault(code: .leaseLost, message: text)
    }

    // MARK: Locks

    /// The lock that keeps out entries of a batch for a target; nil if there is none.
    func lock(on target: Target, for batch: Batch, of session: Incarnation) -> LeaseTable.Claim? {
        guard leases.hasLocks else { return nil }
        return leases.lock(on: target, for: session, under: batch.claims)
    }

    /// Why an entry can't be admitted, or waits, while a lock is held.
    func fault(of lock: LeaseTable.Claim) -> Fault {
        let holder =
            sessions[lock.session]?.name.map { "the node \($0)" } ?? "session \(lock.session)"
        return Fault(
            code: .locked, message: "\(lock.name) is locked by \(holder) with claim \(lock.number)")
    }

    /// Whether a batch waits for a lock. It waits for a while, so that a lock which is held for long holds up none of
    /// its node's other actions for ever.
    ///
    /// - Returns: The words for that; nil if it does not wait, or its node has waited for too long and it is judged now.
    mutating func lockHoldingUp(
        _ batch: Batch, of session: Incarnation, at now: Duration
    ) -> String? {
        guard leases.hasLocks else { return nil }
        for row in batch.targets[..<batch.entryRows] {
            guard let lock = lock(on: row.target, for: batch, of: session) else { continue }
            let since = sessions.wait(session, forLock: lock.number, at: now)
            if now - since < settings.lockPatience { return fault(of: lock).message }
        }
        return nil
    }

    // MARK: Questions

    /// Has the log confirm this term if there is something to tell about a claim. A sequencer that was superseded must
    /// not say that a lease is held: the next one does not know that the holder was heard of here.
    mutating func reviewClaim(_ question: Question.Body, into effects: inout [SequencerEffect]) {
        guard !confirmations.isUnderWay, answer(question) != nil else { return }
        confirm(into: &effects)
    }

    /// The same for all questions, after claims have changed.
    mutating func reviewClaims(into effects: inout [SequencerEffect]) {
        guard !confirmations.isUnderWay, questions.ownBodies.contains(where: { answer($0) != nil })
        else { return }
        confirm(into: &effects)
    }

    /// The log has confirmed this term.
    mutating func answerClaims(into effects: inout [SequencerEffect]) {
        guard questions.hasOwn else { return }
        let machine = self
        for (answer, asker) in questions.endConfirmation({ machine.answer($0) }) {
            reply(answer, to: asker, into: &effects)
        }
        reviewClaims(into: &effects)
    }

    /// Says how a claim stands.
    ///
    /// - Returns: The answer; nil if it waits, or the entry that decides how it stands is not in the log yet.
    private func answer(_ question: Question.Body) -> Answer.Body? {
        guard case .lease(let claim, let untilHeld) = question, leases.isDecided(claim.sequence)
        else { return nil }
        if claim.sequence <= term.last, hasLost(claim) { return .lease(.over) }
        guard leases[claim.sequence] != nil else { return .lease(.over) }
        if leases.isHeld(claim.sequence) { return .lease(.held(silenceMax: settings.silenceMax)) }
        return untilHeld ? nil : .lease(.waiting)
    }

    /// The most claims in one answer.
    static let leasesListedMax = 1_000

    /// The claims behind a number for leases that a peer may have, ascending.
    func listLeases(behind number: SequenceNumber, for rights: Rights) -> [LeaseStatus] {
        let all = leases.claims.values.filter {
            $0.number > number
                && (rights.allow(.dispatch, .store($0.name))
                    || rights.allowReading(.store($0.name)))
        }
        return all.sorted { $0.number < $1.number }.prefix(Self.leasesListedMax).map {
            LeaseStatus(
                number: $0.number, name: $0.name, session: $0.session,
                node: sessions[$0.session]?.name, isHeld: leases.isHeld($0.number),
                locks: $0.locks)
        }
    }
}

extension Batch {
    /// The claims under which it is sent.
    var claims: [SequenceNumber] { targets.filter { $0.target == .leases }.map(\.life) }
}

extension LeaseTable {
    /// An entry is admitted, or in the log.
    mutating func apply(
        _ request: LeaseRequest, at entry: SequenceNumber, of session: Incarnation, by owner: Name?
    ) {
        switch request {
        case .claim(let name, let locks):
            add(Claim(number: entry, name: name, session: session, owner: owner, locks: locks))
        case .release(let claim): end(claim.sequence, at: entry)
        }
    }
}
