import ConfluxVocabulary

/// What is read of the log for nodes: commits that the feed did not bring them (rule 5), and snapshots
/// that the log has (rule 19). What can't be read is said to who asked, and ends nothing.
extension SequencerMachine {
    mutating func fetch(
        _ fetch: Fetch, from connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        let job = ReadJob(
            connection: connection, request: fetch.request, subject: .commits(from: fetch.from),
            limitBytes: min(fetch.limitBytes, settings.fetchBytesMax))
        wait(for: job, acknowledging: fetch.acknowledged, into: &effects)
    }

    mutating func load(
        _ load: Load, from connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        let job = ReadJob(
            connection: connection, request: load.request,
            subject: .snapshot(load.place, offset: load.offset),
            limitBytes: min(load.limitBytes, settings.snapshotPartBytesMax))
        wait(for: job, acknowledging: load.acknowledged, into: &effects)
    }

    private mutating func wait(
        for job: ReadJob, acknowledging tag: UInt64, into effects: inout [SequencerEffect]
    ) {
        // Also a request that is answered at once shows what was read.
        credit.acknowledge(tag, on: job.connection)
        // A node asks again when it gets no answer: dropping is the bound's stated behaviour.
        guard credit.hasRoom(for: job.connection) else { return }
        if case .commits(let from, _) = job.subject, from < tenure.floor || from > tenure.last {
            answer(job, with: [], damage: nil, into: &effects)
            return
        }
        reads.add(job)
        beginReads(into: &effects)
    }

    private mutating func beginReads(into effects: inout [SequencerEffect]) {
        while reads.underWay < settings.readsMax, var job = reads.take() {
            if case .commits(let from, _) = job.subject {
                job.subject = .commits(from: from, through: tenure.last)
            }
            effects.append(.read(job))
        }
    }

    /// The log has read what was asked for, or could not.
    mutating func read(
        _ outcome: ReadOutcome, for job: ReadJob, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        reads.end()
        beginReads(into: &effects)
        switch outcome {
        case .failed: break
        case .commits(let bodies, let damage):
            if let damage { met(damage, at: now, into: &effects) }
            answer(job, with: bodies, damage: damage, into: &effects)
        case .snapshot(let chunk, let failure):
            if chunk.isNone, case .saved(let base)? = directory.life(chunk.place)?.record.base,
                base.sequence == chunk.place.sequence
            {
                // What openers should begin with can't be read: replicas make another one.
                directory.change(chunk.place) { $0.point.want() }
                effects.append(.note(.snapshotFailed(chunk.place, failure ?? "it is not there")))
            }
            let tag = credit.send(chunk.bytes.count, to: job.connection)
            let served = SnapshotServed(request: job.request, deliveryTag: tag, chunk: chunk)
            effects.append(.send(.snapshotServed(served), to: job.connection))
        }
    }

    private mutating func answer(
        _ job: ReadJob, with bodies: [Bytes], damage: Damage?,
        into effects: inout [SequencerEffect]
    ) {
        let tag = credit.send(bodies.reduce(0) { $0 + $1.count }, to: job.connection)
        let entries = Entries(
            request: job.request, last: tenure.last, floor: tenure.floor, deliveryTag: tag,
            commits: bodies, damage: damage)
        effects.append(.send(.entries(entries), to: job.connection))
    }
}

/// What of the log is known to be damaged. Nothing looks for it: it is met by who reads.
///
/// A store whose entries behind its snapshot may be among it can't be begun until there is a snapshot
/// behind the damage; live replicas, which are beyond it, are asked for one. All other stores go on.
extension SequencerMachine {
    /// Damage that was met, and whether a snapshot behind it may still come.
    struct KnownDamage: Sendable {
        var damage: Damage
        var awaitedUntil: Duration
        var isAwaited = true
    }

    /// The most places of damage that are remembered. *At the bound* the lowest is forgotten, and met
    /// again by who reads it.
    static let damagesMax = 64

    private mutating func met(
        _ damage: Damage, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        guard !damages.contains(where: { $0.damage.first == damage.first }) else { return }
        effects.append(.note(.damaged(damage)))
        // Votes come first, then the parts of the snapshot.
        damages.append(
            KnownDamage(damage: damage, awaitedUntil: now + settings.votePatience * 2))
        damages.sort { $0.damage.first < $1.damage.first }
        if damages.count > Self.damagesMax { damages.removeFirst() }
        for name in directory.lives.lives.keys.sorted()
        where directory.life(of: name)?.hasVoter == true && knownDamage(ahead: name) != nil {
            directory.change(name) { $0.point.want() }
        }
    }

    /// The damage that who begins with what is kept of a store would have to read.
    private func knownDamage(ahead name: StoreName) -> KnownDamage? {
        guard let store = directory.store(name), directory.stamp(of: name) > store.keptThrough
        else { return nil }
        return damages.first { $0.damage.last > store.keptThrough }
    }

    /// Where who opens a store may begin to read, if nothing is kept of it that is newer. Where no
    /// entry behind its snapshot concerns it, that is behind all damage.
    func readingFloor(of name: StoreName) -> SequenceNumber {
        guard let last = damages.last?.damage.last, let store = directory.store(name),
            directory.stamp(of: name) <= store.keptThrough
        else { return tenure.floor }
        return max(tenure.floor, last.next)
    }

    /// Holds off who opens a store that can't be begun. While another replica may still give a
    /// snapshot it is left unanswered, and asks again.
    ///
    /// - Returns: Whether it can't.
    mutating func isHeldOff(
        _ opener: Opener, from name: StoreName, into effects: inout [SequencerEffect]
    ) -> Bool {
        guard let known = knownDamage(ahead: name) else { return false }
        // It has nothing to vote with.
        directory.endHosting(of: name, by: opener.incarnation)
        directory.change(name) { $0.point.want() }
        if known.isAwaited, directory.life(of: name)?.hasVoter == true { return true }
        guard let connection = sessions[opener.incarnation]?.connection else { return true }
        let damage = known.damage
        let text =
            "entries \(damage.first) to \(damage.last) of the log can't be read, and there is no "
            + "snapshot of \(name) behind them: \(damage.message) A snapshot is taken once a "
            + "node that has the store is there"
        let opened = Opened(request: opener.request, outcome: .failed(.damaged, message: text))
        effects.append(.send(.opened(opened), to: connection))
        return true
    }

    /// What no snapshot came for in time is not waited for any more; what the log has given up is
    /// forgotten.
    mutating func reviewDamage(at now: Duration) {
        damages.removeAll { $0.damage.last < tenure.floor }
        for index in damages.indices where damages[index].awaitedUntil <= now {
            damages[index].isAwaited = false
        }
    }
}
