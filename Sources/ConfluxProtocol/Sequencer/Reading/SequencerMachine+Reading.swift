import ConfluxVocabulary

/// What is read of the log for nodes: commits that the feed did not bring them (rule 5), and snapshots
/// that the log has (rule 19). What can't be read is said to who asked, and ends nothing.
extension SequencerMachine {
    /// A node asks for something that is read of the log.
    mutating func read(
        _ request: ReadQueue.Request, from connection: ConnectionID, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        // Also a request that is answered at once shows what was read.
        credit.acknowledge(request.acknowledged, on: connection)
        // A node asks again when it gets no answer: dropping is the bound's stated behaviour.
        guard credit.hasRoom(for: connection) else { return }
        if case .fetch(let fetch) = request,
            fetch.from < tenure.floor || fetch.from > tenure.last
        {
            answer(fetch.request, with: [], to: connection, at: now, into: &effects)
            return
        }
        reads.add(request, of: connection)
        beginReads(into: &effects)
    }

    private mutating func beginReads(into effects: inout [SequencerEffect]) {
        while reads.underWay < settings.readsMax, let (connection, request) = reads.take() {
            switch request {
            case .fetch(let fetch):
                effects.append(
                    .readFetch(
                        FetchJob(
                            connection: connection, request: fetch.request, from: fetch.from,
                            last: tenure.last,
                            limitBytes: min(fetch.limitBytes, settings.fetchBytesMax))))
            case .load(let load):
                effects.append(
                    .readSnapshot(
                        LoadJob(
                            connection: connection, request: load.request, place: load.place,
                            offset: load.offset,
                            limitBytes: min(load.limitBytes, settings.snapshotPartBytesMax))))
            }
        }
    }

    /// The log has read what was asked for, or could not.
    mutating func fetched(
        _ job: FetchJob, _ bodies: [Bytes], _ damage: Damage?, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        endRead(into: &effects)
        if let damage { met(damage, at: now, into: &effects) }
        answer(
            job.request, with: bodies, damage: damage, to: job.connection, at: now,
            into: &effects)
    }

    mutating func loaded(
        _ job: LoadJob, _ chunk: SnapshotChunk, failure: String?, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        endRead(into: &effects)
        if chunk.isNone, case .saved(let base)? = directory.life(job.place)?.record.base,
            base.sequence == job.place.sequence
        {
            // What openers should begin with can't be read: replicas make another one.
            directory.change(job.place) { $0.point.want() }
            effects.append(.note(.snapshotFailed(job.place, failure ?? "it is not there")))
        }
        let tag = credit.send(chunk.bytes.count, to: job.connection, at: now)
        let served = SnapshotServed(request: job.request, deliveryTag: tag, chunk: chunk)
        effects.append(.send(.snapshotServed(served), to: job.connection))
    }

    /// What was asked for can't be read just now, and is asked for again.
    mutating func endRead(into effects: inout [SequencerEffect]) {
        reads.end()
        beginReads(into: &effects)
    }

    private mutating func answer(
        _ request: UInt64, with bodies: [Bytes], damage: Damage? = nil,
        to connection: ConnectionID, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        let tag = credit.send(
            bodies.reduce(0) { $0 + $1.count }, to: connection, at: now)
        let entries = Entries(
            request: request, last: tenure.last, floor: tenure.floor, deliveryTag: tag,
            commits: bodies, damage: damage)
        effects.append(.send(.entries(entries), to: connection))
    }
}

extension ReadQueue.Request {
    fileprivate var acknowledged: UInt64 {
        switch self {
        case .fetch(let fetch): fetch.acknowledged
        case .load(let load): load.acknowledged
        }
    }
}
