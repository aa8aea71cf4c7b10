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
                return Fault(
                    code: .leaseLost,
                    message: "the claim is over: it was released, or its session has left")
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
        let locks = batch.targets[..<batch.entryRows].compactMap {
            lock(on: $0.target, for: batch, of: session)
        }
        // The waits for all of them begin now.
        let patience = settings.lockPatience
        let waits = sessions.changeLockWaits(of: session) { waits in
            locks.map { waits.wait(for: $0.name, batch.firstCounter, patience: patience, at: now) }
        }
        return zip(locks, waits ?? []).first { $1 < patience }.map {
            fault(of: $0.0).message
        }
    }

    // MARK: Questions

    /// A session asks how a claim of its own stands.
    mutating func askOfClaim(
        _ claim: StoreVersion, untilHeld: Bool, number: UInt64, from asker: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        let isOwn =
            leases[claim.sequence].map { connections[asker] == .member($0.session) }
            ?? !leases.isDecided(claim.sequence)
        // A claim that is not in this log yet is of a newer term. The node asks again.
        guard claim.sequence <= term.last else { return }
        guard isOwn, !hasLost(claim) else {
            let over = Answer(number: number, body: .lease(.over))
            return reply(over, to: asker, into: &effects)
        }
        claimQuestions.keep(
            claim.sequence, untilHeld: untilHeld, number: number, from: asker,
            isAnswered: stateOfClaims(claim.sequence, untilHeld) != nil)
        reviewClaims(into: &effects)
    }

    /// Has the log confirm this term if there is something to tell about claims.
    mutating func reviewClaims(into effects: inout [SequencerEffect]) {
        guard !confirmations.isUnderWay, claimQuestions.haveAnswers else { return }
        confirm(into: &effects)
    }

    /// The log has confirmed this term.
    mutating func answerClaims(into effects: inout [SequencerEffect]) {
        for (answer, asker) in claimQuestions.endConfirmation(stateOfClaims) {
            reply(answer, to: asker, into: &effects)
        }
        reviewClaims(into: &effects)
    }

    /// Says how a claim stands now.
    private var stateOfClaims: (SequenceNumber, _ untilHeld: Bool) -> LeaseState? {
        { [leases, silenceMax = settings.silenceMax] claim, untilHeld in
            switch leases.standing(of: claim) {
            case nil: nil
            case .held: .held(silenceMax: silenceMax)
            case .waiting: untilHeld ? nil : .waiting
            case .over: .over
            }
        }
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

    /// Whether it has a row for a store, besides rows with faults.
    func concerns(_ store: StoreName, besides faults: [SequencerMachine.Fault?]) -> Bool {
        zip(targets, faults).contains { $1 == nil && $0.target.concerns(store) }
    }
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
