import ConfluxVocabulary

/// Reads the log for nodes: commits that the feed did not bring them (rule 5), and snapshots that
/// the log has (rule 19). If something can't be read, the node that asked is told, and nothing else
/// ends.
extension SequencerMachine {
    mutating func fetch(
        _ fetch: Fetch, from connection: ConnectionID, as principal: Principal, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        let job = ReadJob(
            connection: connection, request: fetch.request, subject: .commits(from: fetch.from),
            limitBytes: min(fetch.limitBytes, settings.fetchBytesMax))
        wait(
            for: job, of: principal, acknowledging: fetch.acknowledged, at: now, into: &effects)
    }

    mutating func load(
        _ load: Load, from connection: ConnectionID, as principal: Principal, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        let job = ReadJob(
            connection: connection, request: load.request,
            subject: .snapshot(load.place, offset: load.offset),
            limitBytes: min(load.limitBytes, settings.snapshotPartBytesMax))
        wait(
            for: job, of: principal, acknowledging: load.acknowledged, at: now, into: &effects)
    }

    private mutating func wait(
        for job: ReadJob, of principal: Principal, acknowledging tag: UInt64, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        // Any request shows what the node has read, even one that is answered at once.
        credit.acknowledge(tag, on: job.connection)
        // The node asks again if it gets no answer. To drop the request is the bound's stated
        // behaviour.
        guard credit.hasRoom(for: job.connection) else {
            return waste(.surplus, by: principal, at: now, into: &effects)
        }
        if case .commits(let from, _) = job.subject, from < tenure.floor || from > tenure.last {
            answer(job, with: [], damage: nil, into: &effects)
            return
        }
        reads.add(job, of: principal.sharer(on: job.connection))
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

    /// The log has read what a node asked for, or could not read it.
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
                // The snapshot with which openers should begin can't be read, so the replicas make
                // another one.
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
