import ConfluxVocabulary

/// Digest points, and what replicas report there (see ``Votes``).
extension SequencerMachine {
    /// The entries of a batch are in the log, with these loads, from a number on.
    mutating func note(_ loads: [TargetLoad], by owner: Name?, from first: SequenceNumber) {
        directory.note(loads, by: owner, from: first)
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

    /// Makes a digest point due if enough entries have concerned the store since its last point.
    mutating func reviewPoint(of name: StoreName) {
        if isPointSpaced(name) { directory.change(name) { $0.point.fallDue() } }
    }

    private func isPointSpaced(_ name: StoreName) -> Bool {
        guard let store = directory.store(name), !store.isFrozen else { return false }
        return directory.load(of: name) - store.pointLoad >= spacing(of: name)
    }

    /// The bytes of entries between two points of a store. A larger state has a larger spacing.
    func spacing(of name: StoreName) -> UInt64 {
        let life = directory.life(of: name)
        let size: UInt64 =
            switch (life?.work.point.stateBytes, life?.record.base) {
            case (let size?, _): size
            case (nil, .initial(let state, _)?): UInt64(state.bytes.count)
            case (nil, .saved(let reference)?): reference.byteCount
            case (nil, nil): 0
            }
        // No snapshot is taken of a larger state, and a replica may report any size.
        let (bytes, overflow) = min(size, settings.snapshotBytesMax)
            .multipliedReportingOverflow(by: settings.digestRatioMin)
        return max(settings.digestBytesMin, overflow ? .max : bytes)
    }

    /// Admits the digest points that are due, after the batches of the commit that is about to be
    /// launched.
    ///
    /// A store whose votes are awaited waits, too. A large state takes long to encode. Since votes
    /// count only before the next point, it would be encoded again and again for points that are
    /// never decided. Besides, the spacing of its points is known only once it has voted.
    mutating func admitPoints() {
        var count = 0
        while count < PointPlan.perCommitMax, let name = directory.lives.nextReady {
            // The store is examined again when a node opens it, or when entries for it are logged.
            directory.change(name) { $0.point.postpone() }
            guard let life = directory.life(of: name), !life.isEnding, !life.isBaseFixed,
                !life.isFrozenAtAdmission, !life.work.point.isAdmitted, life.hasVoter
            else { continue }
            count += 1
            directory.change(name) { $0.point.admit() }
            let number = life.record.life
            pipeline.admit(
                .digestPoint(name, life: number), then: .digestPoint(name, life: number))
        }
    }

    /// A point is in the log. The store's hosts are expected to vote.
    mutating func pointLanded(
        _ name: StoreName, life: SequenceNumber, at sequence: SequenceNumber, now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        directory.note(.digestPoint(name, life: life), at: sequence)
        let place = SnapshotPlace(store: name, life: life, sequence: sequence)
        directory.change(place) { $0.point.land() }
        // If the replicas' present state is about to become obsolete, there is no vote until the
        // entry that makes it so is in the log.
        guard let present = directory.life(place), !present.isBaseFixed,
            !directory.skips.isPending(for: name)
        else { return }
        // Votes count only before the next point.
        if present.work.votes.round?.verdict == nil { decide(name, at: now, into: &effects) }
        let round = Votes.Round(
            place: place, schemaVersion: present.record.schemaVersion,
            load: present.record.pointLoad,
            deadline: now.monotonic + settings.votePatience, awaited: expectedVoters(of: present))
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
            // A late vote causes a new decision about all votes.
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

    /// Decides the votes that are complete, or whose time is up.
    mutating func decideDue(at now: Moment, into effects: inout [SequencerEffect]) {
        let names = directory.lives.decidable(at: now.monotonic)
        for name in names {
            guard let round = directory.life(of: name)?.work.votes.round,
                round.isSilent(at: now.monotonic)
            else { continue }
            let text =
                "no replica reported its state in time; a state with a number that is not "
                + "finite, for instance, can't be encoded"
            countUnconfirmed(round)
            snapshotFailed(round.place, text, into: &effects)
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
            // The point became due while the size of the state was unknown.
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
            // An upload under way is not given up for a newer state of the same replicas: otherwise
            // the log might grow faster than uploads complete.
            let isComing = work.upload?.isConfirmed == true
            // A snapshot is wanted, or the entries since the last one exceed the bound.
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
            countUnconfirmed(round)
            directory.change(name) {
                $0.failSnapshot(
                    "no state has a majority of its replicas", at: round.place.sequence)
            }
            freezeUnsaved(name)
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
