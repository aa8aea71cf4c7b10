import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// What is hosted here: how it begins, and how it ends.
extension Applier {
    func register(_ registration: Registration) {
        registrations.add(registration)
        let state = registration.state
        let stores = states[state] ?? StateStores(state, locals: makeProgress(of: .state(state)))
        states[state] = stores
        registration.attach(stores, makeProgress(of: registration.subject))
        // Opens and closes reach the link by this thread alone, and so in this order.
        tell(.open(registration.open))
    }

    /// Whoever waited for it has given up, or is told by who calls.
    ///
    /// - Returns: What was registered, and whether it was open.
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

    /// Nobody waits for a store that is closed.
    private func release(_ progress: StoreProgress) {
        while let item = progress.takeNext() {
            if case .outcome(let outcome) = item.goal { reached(outcome) }
        }
        awaited.removeAll { $0 === progress }
        busy.removeAll { $0 === progress }
    }

    func restore(
        _ store: StoreName, life: SequenceNumber, _ snapshot: Snapshot,
        following: (aside: Bytes?, through: SequenceNumber), _ skipped: [SequenceNumber],
        _ request: UInt64, _ log: LogID
    ) {
        guard let replica = replica(store) else { return }
        replica.skips = Set(skipped)
        replica.begin(
            with: snapshot, life: life, log: log, following: following, request: request,
            crashes: crashRecord(of: store, life, log, at: snapshot.sequence),
            background: background, inPlaceBytesMax: inPlaceBytesMax)
        collect(replica.progress)
    }

    /// A store has its snapshot, or can't be given it.
    func restored(_ replica: Replica, _ error: (any Error)?) {
        let progress = replica.progress
        guard progress.phase == .empty else { return }
        if let error {
            stop(replica, "the snapshot of \(replica.name) can't be read: \(error)")
        } else if let aside = replica.following.aside {
            follow(replica, aside)
        }
        let through = replica.endFollowing()
        if progress.phase != .ended {
            progress.phase = .ready
            progress.delivered = max(progress.delivered, through)
        }
        report(.ready(progress.subject, through: through, request: progress.request))
    }

    /// It takes nothing, not even what is in its snapshot.
    private func stop(_ replica: Replica, _ message: String) {
        replica.progress.stop = (nil, message)
        replica.progress.delivered = .zero
        replica.progress.phase = .ended
    }

    /// Where the store notes what it applies from this snapshot on.
    private func crashRecord(
        of store: StoreName, _ life: SequenceNumber, _ log: LogID, at sequence: SequenceNumber
    ) -> CrashRecord? {
        guard let journal else { return nil }
        // Before a store there may be nobody who listens.
        if let warning = journal.takeWarning() { announce(.crashJournal(message: warning)) }
        let record = journal.record(of: store, life: life, log: log, at: sequence)
        if record == nil {
            announce(
                .crashJournal(
                    message: """
                        The crash journal has no place for \(store): what it dies of is not counted. \
                        It has \(CrashJournal.slotsMax) places; host fewer stores in this process.
                        """))
        }
        return record
    }

    /// Gives a store the entries behind its snapshot that the log holds no longer.
    private func follow(_ replica: Replica, _ aside: Bytes) {
        do throws(WireError) {
            let entries = try AsideEntries.commits(of: aside)
            // Of what the log holds no longer nobody tells but what was kept with it.
            for entry in entries { noteSkips(of: entry.commit, for: replica) }
            replica.progress.phase = .catchingUp
            for entry in entries {
                apply(entry.commit, to: .only([replica.progress.subject]))
                // However much it is: nobody keeps it to give it again.
                if replica.progress.phase == .parked { replica.progress.phase = .catchingUp }
            }
        } catch {
            stop(replica, "what is kept of \(replica.name) beside the log can't be read: \(error)")
        }
    }

    /// Notes which entries have no effect on a store, before it gets any.
    private func noteSkips(of commit: Commit, for replica: Replica) {
        for block in commit.blocks {
            guard case .event(.skipped(let sequence, let target), _) = block,
                target.concerns(replica.name)
            else { continue }
            replica.skips.insert(sequence)
        }
    }

    /// An open is answered: it is told once the store has applied what it caught up with.
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

    /// The sequencer knows that the state is bridged, for the first time or again.
    private func bridged(_ stores: StateStores) {
        let locals = stores.locals
        if !stores.isBridged || locals.phase == .empty {
            stores.isBridged = true
            locals.phase = .attached
            locals.delivered = delivered
            if stores.isInhabited {
                // Of what was before they were reached by nothing is known.
                locals.jump(through: delivered)
                wantFeed(for: locals)
            } else {
                locals.leave(at: .zero)
            }
        } else if locals.phase == .ready {
            wantFeed(for: locals)
        }
    }

    /// A local store of a bridged state is there. It gets all that is delivered to this node from now on: what
    /// was told here before, by a receipt above all, was before it (P6).
    func inhabit(_ state: Name) {
        guard let stores = states[state], !stores.isInhabited else { return }
        stores.isInhabited = true
        guard stores.isBridged, stores.locals.phase == .attached else { return }
        stores.locals.delivered = delivered
        stores.locals.comeBack(at: delivered.next)
        wantFeed(for: stores.locals)
    }

    /// From its position on it gets what follows, from a feed that this node may not follow yet.
    private func wantFeed(for locals: StoreProgress) {
        locals.phase = .ready
        report(.ready(locals.subject, through: locals.delivered, request: locals.request))
    }

    /// What a bridged state's stores catch up with may have a gap, which was told as `missed`.
    func noteGap(before first: SequenceNumber, of locals: StoreProgress) {
        if first > locals.delivered.next {
            locals.jump(through: SequenceNumber(first.rawValue - 1))
        }
    }

    func complete(_ request: UInt64, _ outcome: OpenOutcome) {
        guard let (registration, isOpen) = registrations[request] else { return }
        if let error = failure(of: outcome, registration.subject) {
            unregister(registration.subject)
            // It was open, and the history that it was open in is lost: nobody waits for this.
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

    /// What stands before the end of a store's life is applied here: nobody hosts it any more.
    func drop(_ store: StoreName) {
        // It may have been closed, or loaded anew, meanwhile.
        guard replica(store)?.isDropped == true else { return }
        for (registration, isOpen) in unregister(.store(store)) {
            if isOpen {
                registration.lost(.dropped(store))
            } else {
                registration.completion(.failure(.dropped(store)))
            }
        }
    }

    private func failure(of outcome: OpenOutcome, _ subject: HostingSubject) -> NodeError? {
        switch outcome {
        case .failed(let code, let message):
            return NodeError(
                code: .openFailed, message: "\(subject.text) can't be opened (\(code)): \(message)",
                rejection: code)
        case .opened:
            guard case .store(let store) = subject,
                let stop = replica(store)?.progress.stop
            else { return nil }
            return NodeError(
                code: stop.at == nil ? .openFailed : .storeStopped, message: stop.message)
        }
    }
}
