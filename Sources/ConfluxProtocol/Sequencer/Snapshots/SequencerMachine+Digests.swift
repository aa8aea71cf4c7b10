import ConfluxVocabulary

/// When stores are digested. *Use*: a store is looked at when the log of it grew, not all the time.
struct PointSchedule: Sendable {
    /// The stores that are to be digested. Looked at with each commit.
    var due: Set<StoreName> = []
    /// Of which of them a snapshot is wanted whatever it takes: the log is kept for it, or replicas
    /// that stopped wait for it.
    var wanted: Set<StoreName> = []
    /// The stores whose digest point is not in the log yet.
    var admitted: Set<StoreName> = []
    /// The size of each state, as it was last heard of.
    var sizes: [StoreName: UInt64] = [:]
    /// What concerned a store up to its snapshot, in bytes; not known after a start.
    var snapshotLoads: [StoreName: UInt64] = [:]
    /// The bytes of entries for whole states when their stores were looked at.
    var reviewed: [Name: UInt64] = [:]
    /// The bytes of the whole log when stores were last digested for which it is kept.
    var keepers: [StoreName: UInt64] = [:]

    /// How many digest points one commit has at most. Others follow in the next one.
    static let perCommitMax = 64

    mutating func forget(_ store: StoreName) {
        due.remove(store)
        wanted.remove(store)
        sizes[store] = nil
        snapshotLoads[store] = nil
        keepers[store] = nil
    }
}

/// Digest points and what replicas say there: see ``DigestTable``.
extension SequencerMachine {
    /// Entries are in the log.
    mutating func note(_ loads: [TargetLoad], through last: SequenceNumber) {
        directory.note(loads, through: last)
        for load in loads {
            switch load.target {
            case .store(let name): reviewPoint(of: name)
            case .state(let state):
                let bytes = directory.globals[state]?.byteCount ?? 0
                guard bytes - points.reviewed[state, default: 0] >= settings.digestBytesMin
                else { break }
                points.reviewed[state] = bytes
                for name in directory.stores.keys where name.state == state {
                    reviewPoint(of: name)
                }
            case .event: break
            }
        }
    }

    /// Whether enough of the log concerned a store since its last point.
    mutating func reviewPoint(of name: StoreName) {
        if isPointSpaced(name) { points.due.insert(name) }
    }

    private func isPointSpaced(_ name: StoreName) -> Bool {
        guard let store = directory.store(name), !store.isFrozen else { return false }
        return directory.load(of: name) - store.pointLoad >= spacing(of: name)
    }

    /// The bytes of log between two points of a store: the larger its state, the more.
    func spacing(of name: StoreName) -> UInt64 {
        let size: UInt64 =
            switch (points.sizes[name], directory.store(name)?.base) {
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

    /// The live sessions that host a store's present life in its own schema version.
    func voters(of name: StoreName) -> [Incarnation] {
        guard let store = directory.store(name) else { return [] }
        return sessions.all.filter {
            $0.presence == .live && $0.hosted[name]?.life == store.life
                && $0.hosted[name]?.schemaVersion == store.schemaVersion
                && $0.stopped[name] == nil
        }.map(\.incarnation).sorted()
    }

    /// Puts what is due behind the batches of the commit that is about to be launched.
    ///
    /// A store whose votes are awaited waits, too: a large state takes long to encode, and would be
    /// encoded again and again for points of which none is ever decided, since votes count only
    /// before the next one. How far apart its points are to be is known once it has voted.
    mutating func admitPoints() {
        let names = points.due.filter { !digests.isOpen($0) }.sorted()
            .prefix(PointSchedule.perCommitMax)
        for name in names {
            points.due.remove(name)
            // Who opens it, or what comes for it, has it looked at again.
            guard let store = directory.store(name), admittedLife(of: name)?.life == store.life,
                !isFrozenAtAdmission(name), upgrading[name] == nil,
                !points.admitted.contains(name), !voters(of: name).isEmpty
            else { continue }
            points.admitted.insert(name)
            pipeline.admit(
                .digestPoint(name, life: store.life), then: .digestPoint(name, life: store.life))
        }
    }

    /// Whether an entry is on its way by which what replicas have now counts no more: nothing is
    /// voted on until it is there.
    private func isUnsettled(_ name: StoreName) -> Bool {
        upgrading[name] != nil
            || decisions.keys.contains {
                if case .skip(_, let target) = $0 { target.concerns(name) } else { false }
            }
    }

    /// The point is in the log: its hosts are expected to say what their states are.
    mutating func pointLanded(
        _ name: StoreName, life: SequenceNumber, at sequence: SequenceNumber, now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        points.admitted.remove(name)
        directory.note(.digestPoint(name, life: life), at: sequence)
        guard let store = directory.store(name), store.life == life, !isUnsettled(name) else {
            return
        }
        // Votes count only before the next point.
        if digests.round(of: name)?.verdict == nil { decide(name, at: now, into: &effects) }
        digests.begin(
            DigestTable.Round(
                place: SnapshotPlace(store: name, life: store.life, sequence: sequence),
                schemaVersion: store.schemaVersion, load: store.pointLoad,
                deadline: now.monotonic + settings.votePatience, awaited: Set(voters(of: name))))
    }

    mutating func take(
        _ report: DigestReport, of incarnation: Incarnation, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        switch report {
        case .vote(let vote):
            guard sessions[incarnation]?.hosted[vote.place.store]?.life == vote.place.life,
                digests.add(vote, of: incarnation)
            else { return }
            let round = digests.round(of: vote.place.store)
            if round?.verdict != nil || round?.awaited.isEmpty == true {
                decide(vote.place.store, at: now, into: &effects)
            }
        case .located(let location):
            guard let known = digests.divergences[location.place.store],
                known.firstUnequal <= location.place.sequence, known.path != location.path,
                sessions[incarnation]?.hosted[location.place.store]?.life == location.place.life
            else { return }
            digests.locate(location)
            noteDivergence(of: location.place.store, into: &effects)
        }
    }

    /// Decides what can be decided.
    mutating func decideDue(at now: Moment, into effects: inout [SequencerEffect]) {
        for round in digests.silent(at: now.monotonic) {
            let text =
                "no replica said in time what its state is; one with a number that is not finite, for "
                + "instance, can't be encoded"
            effects.append(.note(.snapshotFailed(round.place, text)))
            freezeUnconfirmed(round.place.store, round)
        }
        for name in digests.due(at: now.monotonic) { decide(name, at: now, into: &effects) }
    }

    private mutating func decide(
        _ name: StoreName, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard let verdict = digests.decide(name), let round = digests.round(of: name) else {
            return
        }
        switch verdict {
        case .majority(let result, let losers):
            points.sizes[name] = result.byteCount
            // It became due while nobody knew how large it is.
            if !points.wanted.contains(name), !isPointSpaced(name) { points.due.remove(name) }
            if losers.isEmpty {
                if digests.converge(name) {
                    effects.append(.note(.converged(name, at: round.place.sequence)))
                }
            } else {
                noteDivergence(of: name, into: &effects)
            }
            // One that is on its way is not given up for one of the same replicas: the log may grow
            // faster than it comes.
            let isComing = uploads[name]?.isConfirmed == true
            if !losers.isEmpty || (isSnapshotDue(name, round) && !isComing) {
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

    /// Whether the log since the store's snapshot has grown past the bound, or somebody waits.
    private func isSnapshotDue(_ name: StoreName, _ round: DigestTable.Round) -> Bool {
        points.wanted.contains(name)
            || round.load - min(round.load, points.snapshotLoads[name, default: 0])
                >= settings.snapshotBytesMin
    }

    private func noteDivergence(of name: StoreName, into effects: inout [SequencerEffect]) {
        guard let status = digests.divergences[name] else { return }
        effects.append(.note(.diverged(name, status)))
    }

    /// Tells the hosts of a store that they differ, once there is a state to compare theirs with.
    func tellDivergence(
        of place: SnapshotPlace, _ reference: SnapshotReference,
        into effects: inout [SequencerEffect]
    ) {
        guard let status = digests.divergences[place.store],
            let round = digests.round(of: place.store), round.place == place
        else { return }
        var losers: Set<Incarnation> = []
        if case .majority(let result, let those)? = round.verdict,
            result.digest == reference.digest
        {
            losers = Set(those)
        }
        for incarnation in round.votes.keys.sorted() {
            guard let session = sessions[incarnation], let connection = session.connection,
                session.hosted[place.store]?.life == place.life
            else { continue }
            let divergence = Divergence(
                store: place.store, life: place.life, lastEqual: status.lastEqual,
                reference: reference, isMajority: status.isMajority,
                mustReload: losers.contains(incarnation))
            effects.append(.send(.divergence(divergence), to: connection))
        }
    }
}
