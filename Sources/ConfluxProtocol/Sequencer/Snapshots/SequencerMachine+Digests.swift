import ConfluxVocabulary

/// Digest points and what replicas say there: see ``Votes``.
extension SequencerMachine {
    /// Entries are in the log.
    mutating func note(_ loads: [TargetLoad], through last: SequenceNumber) {
        directory.note(loads, through: last)
        for load in loads {
            switch load.target {
            case .store(let name): reviewPoint(of: name)
            case .state(let state):
                guard directory.isReviewDue(state, bytesMin: settings.digestBytesMin) else { break }
                for name in directory.names(concernedBy: load.target) { reviewPoint(of: name) }
            case .event: break
            }
        }
    }

    /// Whether enough of the log concerned a store since its last point.
    mutating func reviewPoint(of name: StoreName) {
        if isPointSpaced(name) { directory.change(name) { $0.point.fallDue() } }
    }

    private func isPointSpaced(_ name: StoreName) -> Bool {
        guard let store = directory.store(name), !store.isFrozen else { return false }
        return directory.load(of: name) - store.pointLoad >= spacing(of: name)
    }

    /// The bytes of log between two points of a store: the larger its state, the more.
    func spacing(of name: StoreName) -> UInt64 {
        let life = directory.life(of: name)
        let size: UInt64 =
            switch (life?.work.point.stateBytes, life?.record.base) {
            case (let size?, _): size
            case (nil, .initial(let state, _)?): UInt64(state.bytes.count)
            case (nil, .saved(let reference)?): reference.byteCount
            case (nil, nil): 0
            }
        // Of what is larger no snapshot is taken, and a replica may say of its size what it likes.
        let (bytes, overflow) = min(size, settings.snapshotBytesMax)
            .multipliedReportingOverflow(by: settings.digestRatioMin)
        return max(settings.digestBytesMin, overflow ? .max : bytes)
    }

    /// Puts what is due behind the batches of the commit that is about to be launched.
    ///
    /// A store whose votes are awaited waits, too: a large state takes long to encode, and would be
    /// encoded again and again for points of which none is ever decided, since votes count only
    /// before the next one. How far apart its points are to be is known once it has voted.
    mutating func admitPoints() {
        var count = 0
        while count < PointPlan.perCommitMax, let name = directory.lives.nextReady {
            // Who opens it, or what comes for it, has it looked at again.
            directory.change(name) { $0.point.postpone() }
            guard let life = directory.life(of: name), !life.isEnding, !life.isUpgrading,
                !life.isFrozenAtAdmission, !life.work.point.isAdmitted, life.hasVoter
            else { continue }
            count += 1
            directory.change(name) { $0.point.admit() }
            let number = life.record.life
            pipeline.admit(
                .digestPoint(name, life: number), then: .digestPoint(name, life: number))
        }
    }

    /// The point is in the log: its hosts are expected to say what their states are.
    mutating func pointLanded(
        _ name: StoreName, life: SequenceNumber, at sequence: SequenceNumber, now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        directory.note(.digestPoint(name, life: life), at: sequence)
        let place = SnapshotPlace(store: name, life: life, sequence: sequence)
        directory.change(place) { $0.point.land() }
        // Where what replicas have now counts no more, nothing is voted on until that is in the log.
        guard let present = directory.life(place), !present.isUpgrading,
            !directory.skips.isPending(for: name)
        else { return }
        // Votes count only before the next point.
        if present.work.votes.round?.verdict == nil { decide(name, at: now, into: &effects) }
        let round = Votes.Round(
            place: place, schemaVersion: present.record.schemaVersion,
            load: present.record.pointLoad,
            deadline: now.monotonic + settings.votePatience, awaited: Set(present.voters))
        directory.change(place) { $0.begin(round) }
    }

    mutating func take(
        _ report: DigestReport, of incarnation: Incarnation, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        switch report {
        case .vote(let vote):
            guard directory.change(vote.place, { $0.add(vote, of: incarnation) }) == true,
                let votes = directory.life(vote.place)?.work.votes
            else { return }
            // A vote that comes late has all of them decided anew.
            if !votes.isOpen || votes.isComplete {
                decide(vote.place.store, at: now, into: &effects)
            }
        case .located(let location):
            guard let work = directory.life(location.place)?.work,
                work.hosts[incarnation] != nil, let known = work.votes.divergence,
                known.firstUnequal <= location.place.sequence, known.path != location.path
            else { return }
            directory.change(location.place) { $0.locate(location.path) }
            noteDivergence(of: location.place.store, into: &effects)
        }
    }

    /// Decides what can be decided.
    mutating func decideDue(at now: Moment, into effects: inout [SequencerEffect]) {
        let names = directory.lives.decidable(at: now.monotonic)
        for name in names {
            guard let round = directory.life(of: name)?.work.votes.round,
                round.isSilent(at: now.monotonic)
            else { continue }
            let text =
                "no replica said in time what its state is; one with a number that is not finite, for "
                + "instance, can't be encoded"
            effects.append(.note(.snapshotFailed(round.place, text)))
            freezeUnconfirmed(name, round)
        }
        for name in names { decide(name, at: now, into: &effects) }
    }

    private mutating func decide(
        _ name: StoreName, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard let life = directory.store(name)?.life,
            let verdict = directory.change(name, { $0.decide(since: life) }) ?? nil,
            let round = directory.life(of: name)?.work.votes.round
        else { return }
        switch verdict {
        case .majority(let result, let losers):
            directory.change(name) { $0.point.hear(stateBytes: result.byteCount) }
            guard let work = directory.life(of: name)?.work else { return }
            // It became due while nobody knew how large it is.
            if !work.point.isWanted, !isPointSpaced(name) {
                directory.change(name) { $0.point.postpone() }
            }
            if losers.isEmpty {
                if directory.change(name, { $0.converge() }) == true {
                    effects.append(.note(.converged(name, at: round.place.sequence)))
                }
            } else {
                noteDivergence(of: name, into: &effects)
            }
            // One that is on its way is not given up for one of the same replicas: the log may grow
            // faster than it comes.
            let isComing = work.upload?.isConfirmed == true
            // Whether the log since the store's snapshot has grown past the bound, or somebody waits.
            let isDue =
                work.point.isWanted
                || work.point.load(sinceSnapshot: round.load) >= settings.snapshotBytesMin
            if !losers.isEmpty || (isDue && !isComing) {
                upload(result, of: round, isConfirmed: true, at: now, into: &effects)
            }
        case .none(let voters):
            noteDivergence(of: name, into: &effects)
            if let first = voters.first, let result = round.votes[first] {
                upload(result, of: round, isConfirmed: false, at: now, into: &effects)
            }
            freezeUnconfirmed(name, round)
        }
    }

    private func noteDivergence(of name: StoreName, into effects: inout [SequencerEffect]) {
        guard let status = directory.life(of: name)?.work.votes.divergence else { return }
        effects.append(.note(.diverged(name, status)))
    }

    /// Tells the hosts of a store that they differ, once there is a state to compare theirs with.
    func tellDivergence(
        of place: SnapshotPlace, _ reference: SnapshotReference,
        into effects: inout [SequencerEffect]
    ) {
        guard let work = directory.life(place)?.work, let status = work.votes.divergence,
            let round = work.votes.round, round.place == place
        else { return }
        var losers: Set<Incarnation> = []
        if case .majority(let result, let those)? = round.verdict,
            result.digest == reference.digest
        {
            losers = Set(those)
        }
        for incarnation in round.votes.keys.sorted() {
            guard work.hosts[incarnation] != nil,
                let connection = sessions[incarnation]?.connection
            else { continue }
            let divergence = Divergence(
                store: place.store, life: place.life, lastEqual: status.lastEqual,
                reference: reference, isMajority: status.isMajority,
                mustReload: losers.contains(incarnation))
            effects.append(.send(.divergence(divergence), to: connection))
        }
    }
}
