import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Begins and ends the hosting of stores.
extension Applier {
    func register(_ registration: Registration) {
        registrations.add(registration)
        let state = registration.state
        let stores = states[state] ?? StateStores(state, locals: makeProgress(of: .state(state)))
        states[state] = stores
        registration.attach(stores, makeProgress(of: registration.subject))
        // Only this thread passes opens and closes to the link, so they arrive in this order.
        tell(.open(registration.open))
    }

    /// Ends a registration without a completion: nobody waits for it, or the caller notifies them.
    ///
    /// - Returns: The registration, and whether it was open.
    @discardableResult
    func unregister(_ subject: HostingSubject) -> [RegistrationTable.Entry] {
        let former = registrations.remove(subject)
        let state: Name
        switch subject {
        case .store(let store):
            state = store.state
            if let replica = states[state]?.remove(store) { release(replica.progress) }
            shelf.remove(store)
        case .state(let name):
            state = name
            states[state]?.isBridged = false
            states[state]?.isInhabited = false
            if let locals = states[state]?.locals {
                release(locals)
                locals.forget()
            }
        }
        if states[state]?.isIdle == true { states[state] = nil }
        tell(.close(subject))
        return former
    }

    /// Releases everything that waits for a store that was closed.
    private func release(_ progress: StoreProgress) {
        while let item = progress.takeNext() {
            if case .outcome(let outcome) = item.goal { reached(outcome) }
        }
        awaited.removeAll { $0 === progress }
        busy.removeAll { $0 === progress }
    }

    func restore(
        _ store: StoreName, life: SequenceNumber, _ snapshot: Snapshot, in inForce: VersionInForce,
        following: (aside: Bytes?, through: SequenceNumber), _ skipped: [SequenceNumber],
        _ request: UInt64, _ log: LogID
    ) {
        guard let replica = replica(store) else { return }
        replica.skips = Set(skipped)
        replica.begin(
            with: snapshot, in: inForce, life: life, log: log, epoch: epoch, request: request,
            crashes: crashRecord(of: store, life, log, at: snapshot.sequence),
            background: background, loads: loads, inPlaceBytesMax: inPlaceBytesMax)
        let progress = replica.progress
        if let aside = following.aside { follow(replica, aside) }
        if progress.phase != .ended {
            progress.phase = .ready
            progress.delivered = max(progress.delivered, following.through)
        }
        report(.ready(progress.subject, through: following.through, request: request))
        collect(progress)
    }

    /// The place where the store records what it applies from this snapshot on, and that it is migrated.
    func crashRecord(
        of store: StoreName, _ life: SequenceNumber, _ log: LogID, at sequence: SequenceNumber
    ) -> CrashRecord? {
        guard let journal else { return nil }
        // Before the first store, nobody may be listening for events.
        if let warning = journal.takeWarning() { announce(.crashJournal(message: warning)) }
        let record = journal.record(of: store, life: life, log: log, at: sequence)
        if record == nil {
            announce(
                .crashJournal(
                    message: """
                        The crash journal has no place for \(store): its crashes are not counted. \
                        The journal has \(CrashJournal.slotsMax) places; host fewer stores in \
                        this process.
                        """))
        }
        return record
    }

    /// Gives a store the entries after its snapshot that the log no longer holds.
    private func follow(_ replica: Replica, _ aside: Bytes) {
        do throws(WireError) {
            let entries = try AsideEntries.commits(of: aside)
            // Only what was kept aside tells which of these entries were skipped.
            for entry in entries { noteSkips(of: entry.commit, for: replica) }
            replica.progress.phase = .catchingUp
            for entry in entries {
                apply(entry.commit, to: .only([replica.progress.subject]))
                // Even if it is too much for the lane: nobody could give it again.
                if replica.progress.phase == .parked { replica.progress.phase = .catchingUp }
            }
        } catch {
            replica.progress.stopWithoutState(
                "the entries of \(replica.name) that are kept aside can't be read: \(error)")
        }
    }

    /// Records the skipped entries of a store before it gets any entries.
    private func noteSkips(of commit: Commit, for replica: Replica) {
        for block in commit.blocks {
            guard case .event(.skipped(let sequence, let target), _) = block,
                target.concerns(replica.name)
            else { continue }
            replica.skips.insert(sequence)
        }
    }

    /// Takes the answer to an open, and completes it once the store has caught up.
    func opened(_ request: UInt64, _ outcome: OpenOutcome) {
        guard let (registration, _) = registrations[request] else { return }
        guard case .opened = outcome else { return complete(request, outcome) }
        switch registration.subject {
        case .store(let store):
            guard let progress = replica(store)?.progress else { return }
            let isAttached = progress.phase == .attached
            wait(
                .opened(request: request, outcome),
                at: isAttached ? max(delivered, progress.delivered) : progress.delivered, progress)
        case .state(let state):
            if let stores = states[state] { bridged(stores) }
            complete(request, outcome)
        }
    }

    /// Begins or resumes a bridge that the sequencer has confirmed.
    private func bridged(_ stores: StateStores) {
        let locals = stores.locals
        if !stores.isBridged || locals.phase == .empty {
            stores.isBridged = true
            locals.phase = .attached
            locals.delivered = delivered
            if stores.isInhabited {
                // What came before is unknown.
                locals.jump(through: delivered)
                wantFeed(for: locals)
            } else {
                locals.leave(at: .zero)
            }
        } else if locals.phase == .ready {
            wantFeed(for: locals)
        }
    }

    /// Begins to deliver to the local stores of a bridged state, now that there is one. It gets what is delivered to
    /// this node from now on. Receipts that were given here before concern earlier entries (P6).
    func inhabit(_ state: Name) {
        guard let stores = states[state], !stores.isInhabited else { return }
        stores.isInhabited = true
        guard stores.isBridged, stores.locals.phase == .attached else { return }
        stores.locals.delivered = delivered
        stores.locals.comeBack(at: delivered.next)
        wantFeed(for: stores.locals)
    }

    /// Asks for the feed from the position of the local stores on. The node may not follow it yet.
    private func wantFeed(for locals: StoreProgress) {
        locals.phase = .ready
        report(.ready(locals.subject, through: locals.delivered, request: locals.request))
    }

    /// Notes a gap in what a bridged state's stores catch up with. It was reported as `missed`.
    func noteGap(before first: SequenceNumber, of locals: StoreProgress) {
        if first > locals.delivered.next {
            locals.jump(through: SequenceNumber(first.rawValue - 1))
        }
    }

    func complete(_ request: UInt64, _ outcome: OpenOutcome) {
        guard let (registration, isOpen) = registrations[request] else { return }
        if let error = failure(of: outcome, registration.subject) {
            let replica = replica(of: registration.subject)
            unregister(registration.subject)
            // It is not hosted any more, and has stopped nevertheless.
            if let replica { reportStop(of: replica) }
            // It was open in a history that is lost, so nobody waits for it.
            if isOpen {
                registration.lost(error)
            } else {
                registration.completion(.failure(error))
            }
            return
        }
        registrations.open(request)
        guard !isOpen, case .opened(let life) = outcome else { return }
        registration.completion(.success(life))
    }

    /// Ends the hosting of a dropped store, once everything before its end is applied.
    func drop(_ store: StoreName) {
        // It may have been closed or loaded anew in between.
        guard replica(store)?.isDropped == true else { return }
        for (registration, isOpen) in unregister(.store(store)) {
            if isOpen {
                registration.lost(.dropped(store))
            } else {
                registration.completion(.failure(.dropped(store)))
            }
        }
    }

    private func replica(of subject: HostingSubject) -> Replica? {
        if case .store(let store) = subject { replica(store) } else { nil }
    }

    private func failure(of outcome: OpenOutcome, _ subject: HostingSubject) -> NodeError? {
        switch outcome {
        case .failed(let code, let message):
            return NodeError(
                code: .openFailed, message: "\(subject.text) can't be opened (\(code)): \(message)",
                rejection: code)
        case .opened:
            guard let stop = replica(of: subject)?.progress.stop else { return nil }
            return NodeError(
                code: stop.at == nil ? .openFailed : .storeStopped, message: stop.message)
        }
    }
}
