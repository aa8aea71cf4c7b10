import ConfluxVocabulary

/// Submission: first deduplication (rule 9), then the bounds (rule 27), and then the checks that
/// need no payload (rule 14).
extension SequencerMachine {
    mutating func submit(
        _ batch: Batch, by incarnation: Incarnation, on connection: ConnectionID,
        as principal: Principal, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        let batch = directory.naming(batch)
        let outline = BatchOutline(
            firstCounter: batch.firstCounter, settled: batch.settled, kind: batch.kind,
            count: batch.count)
        let limit = principal.rights.actionsPerSecondMax
        let isPaced = batch.isVoid || pace.allows(principal.name, limit, at: now)
        submit(
            outline, bytes: batch.isVoid ? 0 : batch.encoded.count, by: incarnation, on: connection,
            as: principal, isPaced: isPaced,
            heldUp: {
                batch.isVoid
                    ? nil
                    : $0.storeHoldingUp(batch).map($0.words(holdingUp:))
                        ?? $0.lockHoldingUp(batch, of: incarnation, at: now)
            }, at: now, into: &effects,
            judging: {
                if !batch.isVoid { $0.pace.count(batch.count, of: principal.name, limit, at: now) }
                $0.admit(batch, by: incarnation, as: principal)
            })
    }

    /// Finds a batch's place in its origin's order. The batch is judged if it is next, and if its
    /// key's pace, its targets and the bounds allow it.
    mutating func submit(
        _ batch: BatchOutline, bytes: Int, by incarnation: Incarnation,
        on connection: ConnectionID, as principal: Principal, isPaced: Bool,
        heldUp whatHoldsUp: (inout SequencerMachine) -> String? = { _ in nil }, at now: Duration,
        into effects: inout [SequencerEffect],
        judging judge: (inout SequencerMachine) -> Void
    ) {
        let lastCounter = batch.firstCounter + UInt64(batch.count) - 1
        guard batch.firstCounter >= 1, batch.settled < batch.firstCounter,
            lastCounter <= OutcomeLedger.counterMax
        else {
            refuseMalformed(connection, into: &effects)
            return
        }
        // The node has every outcome up to here. That holds whatever becomes of the batch.
        let settled = sessions.change(incarnation) { ledger in
            ledger.settle(through: batch.settled)
            return ledger
        }
        guard let ledger = settled else { return }

        // Deduplication comes before every other check and returns the original outcome.
        let expected = ledger.lastCounter + 1
        if lastCounter < expected {
            send(
                ledger.outcomes(from: batch.firstCounter, through: lastCounter),
                to: connection, into: &effects)
            return
        }
        // The batch does not begin where it should: one before it was lost.
        guard batch.firstCounter <= expected else {
            // After a batch that was discarded or lost, all batches that were on their way arrive
            // like this.
            waste(.stale, by: principal, at: now, into: &effects)
            discard(expecting: expected, .gap, connection, into: &effects)
            return
        }
        // Only the batch whose turn it is waits for anything.
        let heldUp = whatHoldsUp(&self)
        // A batch that can never fit is rejected, so that it does not block the batches after it.
        let isOversized = bytes > Int(settings.windowBytes)
        let admittedBytes = isOversized ? 0 : bytes
        // A void batch is not logged, so that a withdrawal is in time however full the log is.
        let hasRoom =
            batch.kind == .void
            || (heldUp == nil && !isLogNearlyFull && fitsCommit(bytes: admittedBytes))
        guard ledger.pendingBytes + admittedBytes <= Int(settings.windowBytes),
            ledger.recordCount < settings.unsettledOutcomesMax,
            isPaced, hasRoom, admission.admit(bytes: admittedBytes, by: settings)
        else {
            if !isPaced { waste(.surplus, by: principal, at: now, into: &effects) }
            discard(
                expecting: expected, .full,
                because: heldUp ?? (isLogNearlyFull ? nearlyFullWords : nil), connection,
                into: &effects)
            return
        }
        if batch.firstCounter < expected {
            // The batch is partly known. Batches are judged whole, but may be resubmitted in parts
            // or whole. So this one was judged before a restart, and its part after the log's last
            // counter was rejected.
            send(
                ledger.outcomes(from: batch.firstCounter, through: expected - 1),
                to: connection, into: &effects)
            self.judge(
                UInt32(lastCounter - ledger.lastCounter),
                as: batch.isVoid ? .withdrawn : .unrecorded, of: incarnation)
        } else if isOversized {
            let text =
                "the batch has \(bytes) bytes and the window is \(settings.windowBytes); make the "
                + "actions smaller, or raise the sequencer's limit"
            self.judge(
                batch.count, as: Fault(code: .payloadTooLarge, message: text), of: incarnation)
        } else {
            judge(&self)
        }
        announce(to: incarnation, into: &effects)
    }

    /// Rejects a batch of which only the counters can be read.
    mutating func reject(
        _ batch: BatchOutline, as fault: Fault, by speaker: Speaker,
        on connection: ConnectionID, as principal: Principal, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        guard case .member(let incarnation) = peer(speaker, on: connection, at: now) else {
            refuse(connection, into: &effects)
            return
        }
        submit(
            batch, bytes: 0, by: incarnation, on: connection, as: principal, isPaced: true, at: now,
            into: &effects,
            judging: { $0.judge(batch.count, as: fault, of: incarnation) })
    }

    /// Judges a batch whose turn it is. From here on, its counters have outcomes.
    private mutating func admit(
        _ batch: Batch, by incarnation: Incarnation, as principal: Principal
    ) {
        // The batch was withdrawn before its turn (rule 12). It uses up its counters, and nothing
        // is logged.
        guard !batch.isVoid else {
            judge(batch.count, as: .withdrawn, of: incarnation)
            return
        }
        guard batch.encoded.count <= limits.batchBytesMax else {
            let text = "the batch is too large with the names of the states that handle its events"
            judge(batch.count, as: Fault(code: .payloadTooLarge, message: text), of: incarnation)
            return
        }
        let entryRows = batch.entryRows
        var faults: [Fault?] = []
        for (index, row) in batch.targets.enumerated() {
            faults.append(fault(of: row, hasEntries: index < entryRows, for: principal))
        }
        if leases.hasLocks {
            for (index, row) in batch.targets[..<entryRows].enumerated() where faults[index] == nil
            {
                guard let lock = lock(on: row.target, for: batch, of: incarnation) else { continue }
                faults[index] = fault(of: lock)
            }
        }
        let payloadBytesMax = min(
            limits.payloadBytesMax, Int(principal.rights.payloadBytesMax ?? .max))
        let oversized: [Int]
        do throws(WireError) {
            // This is the only pass over the entries. No payload is parsed or copied.
            oversized = try batch.validate(payloadBytesMax: payloadBytesMax)
        } catch {
            judge(batch.count, as: Fault(code: .malformed, message: error.message), of: incarnation)
            return
        }
        var requests: [PlacedRequest] = []
        if let fault = readRequests(of: batch, by: incarnation, as: principal, into: &requests) {
            judge(batch.count, as: fault, of: incarnation)
            return
        }
        sessions.changeLockWaits(of: incarnation) { waits in
            waits.end { batch.concerns($0, besides: faults) }
        }
        if oversized.isEmpty, faults.allSatisfy({ $0 == nil }), !batch.hasConditions {
            for row in batch.targets { directory.see(row.target, by: principal.name) }
            let first = admitWhole(batch, by: incarnation)
            admit(requests, from: first, of: incarnation, by: principal.name)
            return
        }
        if batch.isAtomic {
            // They hold together or not at all, also those of stores that the batch does not change.
            for (index, row) in batch.targets.enumerated() {
                guard let fault = faults[index] ?? conflict(of: row) else { continue }
                judge(batch.count, as: fault, of: incarnation)
                return
            }
        }
        var verdicts: [Fault?] = []
        verdicts.reserveCapacity(Int(batch.count))
        var conditions = ConditionJudge(behind: pipeline.lastAdmitted)
        batch.forEachEntry { target, payload in
            if payload.count > payloadBytesMax {
                let text =
                    "the payload has \(payload.count) bytes and the limit is "
                    + "\(payloadBytesMax); make the action smaller, or raise the sequencer's "
                    + "limit, or the key's"
                verdicts.append(Fault(code: .payloadTooLarge, message: text))
            } else {
                // Once it does not hold, a condition does not hold for the rest of the batch either.
                if !batch.isAtomic {
                    faults[target] =
                        faults[target] ?? conditions.admit(batch.targets[target], in: &self)
                }
                verdicts.append(faults[target])
            }
        }
        // The actions of an atomic batch are admitted or rejected together.
        if batch.isAtomic, let first = verdicts.lazy.compactMap({ $0 }).first {
            judge(batch.count, as: first, of: incarnation)
            return
        }
        if let fault = scatter(of: verdicts, in: batch) {
            judge(batch.count, as: fault, of: incarnation)
            return
        }
        for (row, fault) in zip(batch.targets[..<entryRows], faults) where fault == nil {
            directory.see(row.target, by: principal.name)
        }
        for part in batch.splitting(admitting: { entry, _ in verdicts[entry] == nil }) {
            reject(verdicts, of: batch, before: part.firstCounter, by: incarnation)
            // A batch with requests is atomic, so this is all of it.
            let first = admitWhole(part, by: incarnation)
            admit(requests, from: first, of: incarnation, by: principal.name)
        }
        reject(verdicts, of: batch, before: batch.lastCounter + 1, by: incarnation)
    }

    /// The most pieces of one batch that are admitted between its rejected entries, and the most
    /// bytes of the tables that the pieces repeat. A commit has room for both beyond
    /// ``SequencerSettings/commitBytesMax`` and what `CommitPipeline` counts. The first bound also
    /// limits the runs of entries that are rejected for one reason, each of which is an outcome of
    /// its own.
    static let piecesMax = 4_096
    static let tablesBytesMax = 8 << 20

    /// Why a whole batch must be rejected: its rejected entries are scattered too widely, or their
    /// reasons alternate too often. nil if the entries can be judged one by one.
    private func scatter(of verdicts: [Fault?], in batch: Batch) -> Fault? {
        var pieces = 0
        var rejections = 0
        var former: Fault?
        for (index, verdict) in verdicts.enumerated() where index == 0 || verdict != former {
            if verdict == nil { pieces += 1 } else { rejections += 1 }
            former = verdict
        }
        let tablesBytes = pieces * (batch.encoded.count - batch.entries.count)
        guard
            pieces > Self.piecesMax || rejections > Self.piecesMax
                || tablesBytes > Self.tablesBytesMax,
            let first = verdicts.lazy.compactMap({ $0 }).first
        else { return nil }
        return Fault(
            // The version of a conflict would be that of one store of several.
            code: first.code == .conflict ? .tableFull : first.code,
            message: "the actions of one batch were rejected in too many places to judge each by "
                + "itself; the first: \(first.message)")
    }

    /// - Returns: The number of the first entry.
    private mutating func admitWhole(
        _ batch: Batch, by incarnation: Incarnation
    ) -> SequenceNumber {
        sessions.change(incarnation) {
            $0.judge(count: batch.count, bytes: batch.encoded.count, status: .pending)
        }
        return pipeline.admit(batch.withoutConditions, from: incarnation)
    }

    /// Records rejections, from the ledger's next counter up to the end.
    private mutating func reject(
        _ verdicts: [Fault?], of batch: Batch, before end: UInt64, by incarnation: Incarnation
    ) {
        while let next = sessions[incarnation].map({ $0.ledger.lastCounter + 1 }), next < end,
            let fault = verdicts[Int(next - batch.firstCounter)]
        {
            var count: UInt32 = 1
            while next + UInt64(count) < end,
                verdicts[Int(next - batch.firstCounter) + Int(count)] == fault
            { count += 1 }
            judge(count, as: fault, of: incarnation)
        }
    }

    mutating func judge(_ count: UInt32, as fault: Fault, of incarnation: Incarnation) {
        tally.reject(count, fault.code)
        sessions.change(incarnation) { $0.judge(count: count, bytes: 0, status: fault.status) }
    }

    /// Why entries can't be admitted.
    struct Fault: Equatable {
        var code: RejectionCode
        var message: String
        /// The version of the store, if a condition does not hold.
        var version: StoreVersion?

        fileprivate var status: OutcomeLedger.Status {
            version.map { .conflict($0, message) } ?? .rejected(code, message)
        }

        /// The actions were rejected before a restart. The log says no more about them.
        static let unrecorded = Fault(
            code: .unrecorded,
            message: "it was rejected before the sequencer restarted; dispatch it again")

        /// The actions were withdrawn by their own node before they were ordered.
        static let withdrawn = Fault(
            code: .withdrawn, message: "its node withdrew it before it was ordered")
    }

    /// Why an entry for this target, or a condition on it, can't be admitted. The right to dispatch is checked here
    /// and nowhere else.
    // Mutating, as otherwise each call would copy the machine.
    mutating func fault(
        of row: BatchTarget, hasEntries: Bool, for principal: Principal
    ) -> Fault? {
        let (rights, target) = (principal.rights, row.target)
        // What is asked of the log itself needs rights of its own.
        guard !LogRequest.isFor(target) else { return nil }
        if row.isEvent { return fault(ofEvent: row, for: principal) }
        guard hasEntries ? rights.allow(.dispatch, target) : rights.allowReading(target) else {
            let missing = hasEntries ? Rights.Permission.dispatch : .observe
            return Fault(code: .notAllowed, message: principal.denial(of: missing, target))
        }
        return fault(of: row, hasEntries: hasEntries)
    }

    mutating func fault(of row: BatchTarget, hasEntries: Bool) -> Fault? {
        switch row.target {
        // A timer's actions are for stores and states.
        case .event: return unknown(row.target)
        case .state(let state):
            guard let version = directory.states.schemaVersion(of: state) else {
                return unknown(row.target)
            }
            // No entry may be newer than a replica that it reaches (rule 17).
            return fault(of: row, upTo: version)
        case .store(let name):
            guard let present = directory.admittedLife(of: name) else {
                guard row.life != .zero else { return unknown(row.target) }
                let text = "\(name) was dropped; open it again to create a new store"
                return Fault(code: .otherLife, message: text)
            }
            if row.life != .zero, row.life != present.life {
                let text = "\(name) is another store now: it was created again at \(present.life)"
                return Fault(code: .otherLife, message: text)
            }
            // A life that is about to begin is not frozen. A frozen store may be read.
            if hasEntries, directory.beginnings[name] == nil,
                directory.life(of: name)?.isFrozenAtAdmission == true
            {
                let text = "\(name) is frozen: thaw it first (conflux thaw \(name))"
                return Fault(code: .frozen, message: text)
            }
            return fault(of: row, upTo: present.schemaVersion)
        }
    }

    func fault(of row: BatchTarget, upTo present: UInt32) -> Fault? {
        guard row.schemaVersion < 1 || row.schemaVersion > present else { return nil }
        return Fault(
            code: .schemaVersion,
            message: "\(row.target) has schema version \(present) and the action has "
                + "\(row.schemaVersion)")
    }

    func unknown(_ target: Target) -> Fault {
        // A state stays known once the log has seen it. A store may have been dropped.
        let what =
            switch target {
            case .store: "there is no store \(target): it was never opened, or it was dropped"
            case .state: "no node hosts \(target) and the log has never seen it"
            case .event(let event, _): "no state in the log handles the event \(event)"
            }
        let text = "\(what). Start a worker for it, or name one of: \(directory.knownNames)"
        return Fault(code: .unknownTarget, message: text)
    }

    mutating func discard(
        expecting counter: UInt64, _ reason: Expected.Reason, because message: String? = nil,
        _ connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        tally.postpone(reason)
        let expected = Expected(counter: counter, reason: reason, message: message)
        effects.append(.send(.expected(expected), to: connection))
    }

    private func refuseMalformed(
        _ connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        let bye = Bye(
            code: .malformed,
            message: "counters begin with 1, and a batch begins above what is settled")
        effects.append(.send(.bye(bye), to: connection))
    }
}
