import ConfluxVocabulary

/// Leases: how claims are judged, and what is told of them.
extension SequencerMachine {
    // MARK: Entries

    /// Why a claim can't be admitted, or ended.
    mutating func fault(
        of request: LeaseRequest, by session: Incarnation, as principal: Principal
    ) -> Fault? {
        switch request {
        case .claim(let name):
            guard principal.rights.allow(.dispatch, .store(name)) else {
                return Fault(
                    code: .notAllowed, message: principal.denial(of: .dispatch, Target.store(name)))
            }
            guard leases.hasRoom(for: principal.name) else {
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
            ? "the lease is not held yet: its claim waits for its turn"
            : "the lease is lost: it was released, or the sequencer heard nothing of its session for too long"
        return Fault(code: .leaseLost, message: text)
    }

    // MARK: Questions

    /// Answers those who wait until a claim stands otherwise, as far as that is in the log.
    mutating func answerClaims(into effects: inout [SequencerEffect]) {
        guard questions.hasOwn else { return }
        let (leases, silenceMax) = (leases, settings.silenceMax)
        let answers = questions.settle { body in
            guard case .lease(let claim, let untilHeld) = body else { return nil }
            return leases.answer(to: claim.sequence, untilHeld: untilHeld, silenceMax)
        }
        for (answer, asker) in answers { reply(answer, to: asker, into: &effects) }
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
                node: sessions[$0.session]?.name, isHeld: leases.isHeld($0.number))
        }
    }
}

extension LeaseTable {
    /// Says how a claim stands.
    ///
    /// - Returns: The answer; nil if it waits, or the entry that decides how it stands is not in the log yet.
    func answer(
        to number: SequenceNumber, untilHeld: Bool, _ silenceMax: Duration
    ) -> Answer.Body? {
        guard isDecided(number) else { return nil }
        switch place(of: number) {
        case nil: return .lease(.over)
        case 0?: return .lease(.held(silenceMax: silenceMax))
        case _?: return untilHeld ? nil : .lease(.waiting)
        }
    }

    /// An entry is admitted, or in the log.
    mutating func apply(
        _ request: LeaseRequest, at entry: SequenceNumber, of session: Incarnation, by owner: Name?
    ) {
        switch request {
        case .claim(let name):
            add(Claim(number: entry, name: name, session: session, owner: owner))
        case .release(let claim): end(claim.sequence, at: entry)
        }
    }
}
