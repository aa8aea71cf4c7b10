import ConfluxVocabulary

/// Group commit: what has gathered becomes durable first, and known after that (rule 13).
extension SequencerMachine {
    mutating func launch(at now: Moment, into effects: inout [SequencerEffect]) {
        guard phase == .serving || phase == .stopping else { return }
        if phase == .serving, pipeline.inFlight == nil { admitPoints() }
        if let append = pipeline.launch(
            timestamp: stamp(at: now, into: &effects), isForced: false)
        {
            effects.append(.append(append))
        }
    }

    /// The log has the commits, so they are published. Their follow-ups wait until that is done: nodes wait
    /// for the feed.
    mutating func appended(at now: Moment, into effects: inout [SequencerEffect]) {
        guard let landed = pipeline.inFlight else {
            preconditionFailure("the log answered an append that was not under way")
        }
        let wasClaiming = phase == .claiming
        if phase == .claiming {
            phase = .serving
            servingSince = now.monotonic
            sweepAt = now.monotonic + settings.silenceMax / 4
            floorReviewAt = now.monotonic + settings.floorReviewInterval
            sessions.measureSilence(from: now.monotonic)
            scheduleTimers(at: now.monotonic, landed.timestamp)
        }
        for (index, commit) in landed.append.commits.enumerated() {
            term.land(
                through: commit.last, byteCount: commit.frame.count - Frame.size,
                at: landed.timestamp)
            tally.land(commit)
            if wasClaiming, index == 0 { effects.append(.serve(term.beat)) }
            // A commit larger than any that consists of batches is announced by a beat, and
            // fetched. It contains a store's first state.
            if commit.frame.count <= settings.feedFrameBytesMax {
                effects.append(.publishCommit(frame: commit.frame))
            } else {
                effects.append(.publishBeat(term.beat))
            }
        }
        publishedAt = now.monotonic
    }

    /// The commits are published, so their follow-ups happen.
    mutating func published(at now: Moment, into effects: inout [SequencerEffect]) {
        let landed = pipeline.land()
        reviewAdmission(at: now.monotonic, into: &effects)
        var receiptsDue: [Incarnation] = []
        for expectation in landed.expectations {
            switch expectation.action {
            case .batch(let incarnation, let counter, let loads):
                let epoch = term.epoch
                sessions.change(incarnation) {
                    $0.commit(
                        first: counter, at: expectation.sequence, epoch: epoch,
                        timestamp: landed.timestamp)
                }
                note(loads, by: sessions[incarnation]?.owner, from: expectation.sequence)
                if receiptsDue.last != incarnation { receiptsDue.append(incarnation) }
            case .joined(let nonce):
                joined(nonce, at: expectation.sequence, now: now.monotonic, into: &effects)
            case .rejoined(let incarnation):
                rejoined(incarnation, now: now.monotonic, into: &effects)
            case .created(let store):
                created(store, at: expectation.sequence, into: &effects)
            case .word(let store, let life):
                self.landed(store, life: life, at: expectation.sequence, into: &effects)
            case .digestPoint(let store, let life):
                pointLanded(
                    store, life: life, at: expectation.sequence, now: now, into: &effects)
            case .skipped(let skip):
                skipped(skip, at: expectation.sequence, into: &effects)
            case .handles(let event, let owner, let open, let incarnation):
                directory.note(event, by: owner, at: expectation.sequence)
                guard let connection = sessions[incarnation]?.connection else { break }
                self.open(open, by: incarnation, on: connection, at: now, into: &effects)
            case .left(let incarnation):
                let name = sessions[incarnation]?.name
                effects.append(.note(.left(incarnation, name: name)))
            case .forgotten(let incarnation):
                sessions.remove(incarnation)
            }
        }
        landTimers(through: landed.append.last, at: now.monotonic, landed.timestamp)
        claimQuestions.note(leases.land(through: landed.append.last))
        reviewClaims(into: &effects)
        passFences(at: now, into: &effects)
        // All outcomes of a node are announced at once, so nothing is left for its further batches.
        for incarnation in receiptsDue { announce(to: incarnation, into: &effects) }
        if phase == .stopping {
            if pipeline.isEmpty {
                endInOrder(into: &effects)
            } else {
                launch(at: now, into: &effects)
            }
        }
    }

    /// Sends a node the outcomes that are due, in the order of its counters.
    mutating func announce(to incarnation: Incarnation, into effects: inout [SequencerEffect]) {
        let due = sessions.change(incarnation) { $0.announce() } ?? []
        guard !due.isEmpty, let connection = sessions[incarnation]?.connection else { return }
        send(due, to: connection, into: &effects)
    }

    /// The most runs of receipts in one message, far below what a list may have.
    private static let runsMax = 8_192

    /// Sends outcomes, which are ascending: runs of committed ones together, and each rejected one
    /// by itself.
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
        func reject(_ rejection: Rejection, into effects: inout [SequencerEffect]) {
            flush(into: &effects)
            effects.append(.send(.rejection(rejection), to: connection))
        }
        for outcome in outcomes {
            switch outcome.status {
            case .pending: preconditionFailure("a pending outcome was announced: \(outcome)")
            case .committed(let sequence, let epoch, let timestamp):
                runs.append(
                    Receipts.Run(
                        firstCounter: outcome.first, count: outcome.count, firstSequence: sequence,
                        epoch: epoch, timestamp: timestamp))
                if runs.count == Self.runsMax { flush(into: &effects) }
            case .rejected(let code, let message):
                reject(Rejection(of: outcome, code, message), into: &effects)
            case .conflict(let version, let message):
                reject(Rejection(of: outcome, .conflict, message, version), into: &effects)
            }
        }
        flush(into: &effects)
    }
}

extension Rejection {
    fileprivate init(
        of record: OutcomeLedger.Record, _ code: RejectionCode, _ message: String,
        _ version: StoreVersion? = nil
    ) {
        self.init(
            firstCounter: record.first, count: record.count, code: code, message: message,
            version: version)
    }
}
