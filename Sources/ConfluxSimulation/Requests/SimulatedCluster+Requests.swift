import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// Programs that set timers, and take leases.
extension SimulatedCluster {
    /// The program asks something of the log itself, or dispatches under a lease.
    func request(_ node: SimulatedNode) {
        let store = random.pick(driven(on: node))
        switch random.int(in: 0...6) {
        case 0, 1: setTimer(for: store, node)
        case 2:
            let key = TimerKey(target: .store(store.name), name: random.pick(["a", "b"]))
            note(node.outbox.submit(.cancel(key), mayWait: false), node).isCancellation = true
        case 3:
            // A lock that nobody releases holds up everybody.
            let locks = isHostile && random.chance(0.3)
            let name = locks ? store.name : random.pick(["till/1", "till/2"]).leaseName
            let record = note(node.outbox.submit(.claim(name, locks: locks)), node)
            record.isClaim = true
            record.isLock = locks
        case 4:
            guard let claim = locks.popLast() ?? pickClaim() else { return }
            note(node.outbox.submit(.release(claim)), node)
        case 5:
            guard let claim = pickClaim() else { return }
            askOfClaim(claim, node)
        default:
            guard let claim = pickClaim() else { return }
            let entry = store.entry(place(in: node), &random)
            note(node.outbox.submit([entry], on: [.lease(claim)], mayWait: false)[0], node)
                .lease = claim
        }
    }

    private func setTimer(for store: any SimulatedStore, _ node: SimulatedNode) {
        var builder = BatchBuilder()
        let stores = driven(on: node)
        let count = random.chance(0.2) && stores.count > 1 ? 2 : 1
        for store in [store] + stores.filter({ $0 !== store }).prefix(count - 1) {
            let (row, payload) = store.entry(place(in: node), &random)
            builder.append(target: row, payload: payload)
        }
        // A timer that repeats can be replaced, so that there are few of them.
        let interval = random.chance(0.2) ? random.duration(in: .seconds(1)...(.seconds(4))) : nil
        let key = interval != nil || random.chance(0.5) ? random.pick(["a", "b"]) : nil
        let delay = random.duration(in: .zero...(.seconds(6)))
        let order = TimerOrder(
            key: key,
            due: random.chance(0.8)
                ? .after(delay)
                : .at(Timestamp(rawValue: moment().wall.rawValue + delay.wholeNanoseconds)),
            interval: interval,
            actions: builder.finish(firstCounter: 1, settled: 0, isAtomic: count > 1))
        note(node.outbox.submit(.set(order), mayWait: false), node)
        marks.hit(.timerSet)
    }

    private func place(in node: SimulatedNode) -> SimulatedState.Place {
        SimulatedState.Place(process: node.process, index: node.dispatchCount)
    }

    /// Notes what was dispatched.
    @discardableResult
    func note(_ handle: DispatchHandle, _ node: SimulatedNode) -> DispatchRecord {
        let record = DispatchRecord(
            process: node.process, index: node.dispatchCount, handle: handle)
        if let outcome = handle.outcome {
            // It was never sent.
            marks.hit(.outboxFull)
            record.outcome = outcome
            return record
        }
        node.dispatchCount += 1
        node.unplaced.append(record)
        return record
    }

    /// The present time by the clock of a term's sequencer; nil if it is gone.
    func reading(in epoch: Epoch) -> Duration? {
        sequencers.values.first { $0.machine.epoch == epoch }?.clock.reading(at: now)
    }

    // MARK: Leases

    /// A claim of some process, which may be over.
    private func pickClaim() -> StoreVersion? { claims.isEmpty ? nil : random.pick(claims) }

    /// A process has the receipt of its claim.
    func claimed(_ receipt: Receipt, isLock: Bool) {
        let claim = StoreVersion(sequence: receipt.sequence, epoch: receipt.epoch)
        claims.append(claim)
        if isLock { locks.append(claim) }
        if claims.count > 8 { claims.removeFirst() }
    }

    private func askOfClaim(_ claim: StoreVersion, _ node: SimulatedNode) {
        let number = takeNumber()
        claimQuestions[number] = claim
        let question = Question(
            number: number, patience: random.duration(in: .milliseconds(5)...(.seconds(2))),
            body: .lease(claim, untilHeld: random.chance(0.5)))
        ask(question, node)
    }

    /// Checks what a sequencer says of a claim: a lease is held according to the log, and by no other.
    func check(_ answer: Answer, of sequencer: SimulatedSequencer) throws(Violation) {
        // What a former term says, it may have known before the next one began.
        guard case .lease(.held) = answer.body, let claim = claimQuestions[answer.number],
            sequencer.machine.epoch == disk.epoch
        else { return }
        marks.hit(.leaseHeld)
        try require(
            truth.branch.requests.isHeld(claim), "P13",
            "claim \(claim) was said to hold its lease, and does not")
    }
}

extension Branch {
    /// Checks what an action needs that is in the log for the first time.
    func check(
        new record: DispatchRecord, _ batch: Batch, at sequence: SequenceNumber, in commit: Commit
    ) throws(Violation) {
        try require(
            !record.isExcluded, "P5",
            "\(record.text) stands at \(sequence), and its process was told that it does not")
        if let transaction = record.transaction {
            try check(transaction, from: record, at: sequence, in: commit.first, batch)
        } else if let condition = record.condition {
            try check(condition, of: record, at: sequence, in: commit.first)
        }
        if let lease = record.lease { try check(lease, of: record, at: sequence) }
    }

    /// Checks an action that is in the log under a lease.
    func check(
        _ claim: StoreVersion, of record: DispatchRecord, at sequence: SequenceNumber
    ) throws(Violation) {
        try require(
            requests.isHeld(claim), "P13",
            "\(record.text) stands at \(sequence) under claim \(claim), which is not held")
    }
}

extension String {
    fileprivate var leaseName: StoreName {
        guard let name = StoreName(self) else { preconditionFailure("\(self) is no name") }
        return name
    }
}
