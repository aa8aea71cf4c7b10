import ConfluxVocabulary

/// Group commit: what gathers becomes durable, then known (rule 13).
extension SequencerMachine {
    mutating func launch(at now: Moment, into effects: inout [SequencerEffect]) {
        guard phase == .serving || phase == .stopping else { return }
        if phase == .serving, pipeline.inFlight == nil { admitPoints() }
        if let append = pipeline.launch(timestamp: tenure.stamp(now.wall), isForced: false) {
            effects.append(.append(append))
        }
    }

    /// The log has the commit: it is published first, and then its consequences are told.
    mutating func landed(at now: Moment, into effects: inout [SequencerEffect]) {
        let landed = pipeline.land()
        tenure.last = landed.append.last
        tenure.lastEpoch = tenure.epoch
        if phase == .claiming {
            phase = .serving
            servingSince = now.monotonic
            sweepAt = now.monotonic + settings.silenceMax / 4
            floorReviewAt = now.monotonic + settings.floorReviewInterval
            // Silence is measured afresh in each epoch (rule 10).
            for incarnation in sessions.incarnations {
                sessions[incarnation]?.quietSince = now.monotonic
            }
            effects.append(.serve(tenure.beat))
        }
        tenure.marks.add(
            through: tenure.last, byteCount: landed.append.frame.count - Frame.size,
            at: landed.timestamp)
        publishedAt = now.monotonic
        reviewAdmission(at: now.monotonic, into: &effects)
        if landed.append.frame.count <= Int(settings.feedCommitBytesMax) {
            effects.append(.publishCommit(frame: landed.append.frame))
        } else {
            effects.append(.publishBeat(tenure.beat))
        }
        var receiptsDue: [Incarnation] = []
        for expectation in landed.expectations {
            switch expectation.action {
            case .batch(let incarnation, let counter, let count, let loads):
                sessions[incarnation]?.ledger.commit(
                    first: counter, at: expectation.sequence, epoch: tenure.epoch,
                    timestamp: landed.timestamp)
                note(
                    loads,
                    through: expectation.sequence.advanced(by: UInt64(count) - 1))
                if receiptsDue.last != incarnation { receiptsDue.append(incarnation) }
            case .joined(let nonce):
                joined(nonce, at: expectation.sequence, now: now.monotonic, into: &effects)
            case .rejoined(let incarnation):
                rejoined(incarnation, now: now.monotonic, into: &effects)
            case .created(let store):
                created(store, at: expectation.sequence, into: &effects)
            case .dropped(let store):
                dropped(store, at: expectation.sequence, into: &effects)
            case .upgraded(let store):
                upgraded(store, at: expectation.sequence, into: &effects)
            case .digestPoint(let store, let life):
                pointLanded(
                    store, life: life, at: expectation.sequence, now: now, into: &effects)
            case .decided(let decision):
                decided(decision, at: expectation.sequence, into: &effects)
            case .left(let incarnation):
                let name = sessions[incarnation]?.name
                effects.append(.note(.left(incarnation, name: name)))
            case .forgotten(let incarnation):
                sessions.remove(incarnation)
            }
        }
        // A batch's own node hears of it once, however many of its batches were in the commit.
        var told: Set<Incarnation> = []
        for incarnation in receiptsDue where told.insert(incarnation).inserted {
            announce(to: incarnation, into: &effects)
        }
        if phase == .stopping {
            if pipeline.isEmpty {
                sayBye(into: &effects)
                end(.stopped, into: &effects)
            } else {
                launch(at: now, into: &effects)
            }
        }
    }

    /// Gives a node the outcomes that are due, in the order of its counters.
    mutating func announce(to incarnation: Incarnation, into effects: inout [SequencerEffect]) {
        guard let due = sessions[incarnation]?.ledger.announce() else { return }
        guard let connection = sessions[incarnation]?.connection else { return }
        send(due, to: connection, into: &effects)
    }

    /// The most runs of receipts in one message: far below what a list may have.
    private static let runsMax = 8_192

    /// Sends outcomes, which are ascending: committed ones together, rejected ones each.
    func send(
        _ outcomes: [OutcomeLedger.Record], to connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        var runs: [Receipts.Run] = []
        func flush(into effects: inout [SequencerEffect]) {
            guard !runs.isEmpty else { return }
            effects.append(.send(.receipts(Receipts(runs: runs)), to: connection))
            runs.removeAll()
        }
        for outcome in outcomes {
            switch outcome.fate {
            case .pending: preconditionFailure("a pending outcome was announced: \(outcome)")
            case .committed(let sequence, let epoch, let timestamp):
                runs.append(
                    Receipts.Run(
                        firstCounter: outcome.first, count: outcome.count, firstSequence: sequence,
                        epoch: epoch, timestamp: timestamp))
                if runs.count == Self.runsMax { flush(into: &effects) }
            case .rejected(let code, let message):
                flush(into: &effects)
                let rejection = Rejection(
                    firstCounter: outcome.first, count: outcome.count, code: code,
                    message: message)
                effects.append(.send(.rejection(rejection), to: connection))
            }
        }
        flush(into: &effects)
    }

    /// The most fetches under way of one node: a hole's and a catch-up's, each asked for again.
    static let fetchesPerNodeMax = 4

    /// Sends a node the commits that it asks for (rule 5).
    mutating func fetch(
        _ fetch: Fetch, from connection: ConnectionID, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        // Also one that is answered at once shows what was read.
        let hasRoom = unreadAnswers.admits(fetchFrom: fetch.from, on: connection)
        guard fetch.from >= tenure.floor, fetch.from <= tenure.last else {
            answerFetch(
                FetchJob(
                    connection: connection, request: fetch.request, from: fetch.from,
                    limitBytes: 0), with: [], countsAsRead: false, at: now, into: &effects)
            return
        }
        // A node asks again when it gets no answer: dropping is the bound's stated behaviour.
        let own = fetchesUnderWay[connection, default: 0]
        guard fetchCount < settings.fetchesMax, own < Self.fetchesPerNodeMax, hasRoom else {
            return
        }
        fetchesUnderWay[connection] = own + 1
        fetchCount += 1
        effects.append(
            .readFetch(
                FetchJob(
                    connection: connection, request: fetch.request, from: fetch.from,
                    limitBytes: min(fetch.limitBytes, settings.fetchBytesMax))))
    }

    /// The log has read what a node asked for.
    mutating func endFetch(of connection: ConnectionID) {
        guard let own = fetchesUnderWay[connection] else { return }
        fetchesUnderWay[connection] = own > 1 ? own - 1 : nil
        fetchCount -= 1
    }

    mutating func answerFetch(
        _ job: FetchJob, with bodies: [Bytes], countsAsRead: Bool = true, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        if countsAsRead { endFetch(of: job.connection) }
        if let body = bodies.last {
            let last: SequenceNumber
            do throws(WireError) {
                last = try Commit.last(ofBody: body)
            } catch {
                // Whoever reads it finds the damage. Nobody goes on behind it, so it counts for a
                // while.
                last = job.from
            }
            unreadAnswers.sent(
                .commits(last), byteCount: bodies.reduce(0) { $0 + $1.count },
                to: job.connection, at: now)
        }
        let entries = Entries(
            request: job.request, last: tenure.last, floor: tenure.floor, commits: bodies)
        effects.append(.send(.entries(entries), to: job.connection))
    }
}
