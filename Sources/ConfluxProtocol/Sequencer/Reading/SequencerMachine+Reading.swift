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
        wait(for: job, of: principal, at: now, into: &effects)
    }

    mutating func load(
        _ load: Load, from connection: ConnectionID, as principal: Principal, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        let job = ReadJob(
            connection: connection, request: load.request,
            subject: .snapshot(load.place, offset: load.offset),
            limitBytes: min(load.limitBytes, settings.snapshotPartBytesMax))
        wait(for: job, of: principal, at: now, into: &effects)
    }

    private mutating func wait(
        for job: ReadJob, of principal: Principal, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        if case .commits(let from, _) = job.subject, from < term.floor || from > term.last {
            answer(job, with: [], damage: nil, into: &effects)
            return
        }
        guard reads.add(job, of: principal.sharer(on: job.connection)) else {
            return waste(.surplus, by: principal, at: now, into: &effects)
        }
        beginReads(into: &effects)
    }

    /// Refuses a request of a node that has too much to read already. It gets no long answer: it repeats a
    /// fetch or a load, and a question fails.
    mutating func refuse(
        _ message: NodeMessage, from connection: ConnectionID, as principal: Principal,
        at now: Duration, into effects: inout [SequencerEffect]
    ) {
        guard case .question(let question) = message else {
            return waste(.surplus, by: principal, at: now, into: &effects)
        }
        let text =
            "this connection has reached its limit of unread answers; read them, and ask again later"
        let answer = Answer(
            number: question.number, body: .failed(.tableFull, message: text))
        reply(answer, to: connection, into: &effects)
    }

    private mutating func beginReads(into effects: inout [SequencerEffect]) {
        while reads.underWay < settings.readsMax, var job = reads.take() {
            if case .commits(let from, _) = job.subject {
                job.subject = .commits(from: from, through: term.last)
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
            let served = SnapshotServed(request: job.request, chunk: chunk)
            effects.append(.send(.snapshotServed(served), to: job.connection))
        }
    }

    private mutating func answer(
        _ job: ReadJob, with bodies: [Bytes], damage: Damage?,
        into effects: inout [SequencerEffect]
    ) {
        let entries = Entries(
            request: job.request, last: term.last, floor: term.floor, commits: bodies,
            damage: damage)
        effects.append(.send(.entries(entries), to: job.connection))
    }
}
