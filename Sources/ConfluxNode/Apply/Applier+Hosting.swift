import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// How hosting a store, or bridging a state, begins and ends.
extension Applier {
    func register(_ registration: Registration) {
        registrations.add(registration)
        let state = registration.state
        let stores = states[state] ?? StateStores(state, locals: makeProgress(of: .state(state)))
        states[state] = stores
        registration.attach(stores, makeProgress(of: registration.subject))
        // Only this thread sends opens and closes to the link, so they reach it in this order.
        tell(.open(registration.open))
    }

    /// Ends the hosting or bridging of a subject. Nobody is told: whoever waited for the subject
    /// has given up, or the caller tells them.
    ///
    /// - Returns: The registrations that were removed, and whether each was open.
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

    /// Ends all waiting for a store that is closed.
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

    /// A store has its snapshot, or the snapshot could not be put in.
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

    /// Stops a store before everything: it takes nothing, not even what is in its snapshot.
    private func stop(_ replica: Replica, _ message: String) {
        replica.progress.stop = (nil, message)
        replica.progress.delivered = .zero
        replica.progress.phase = .ended
    }

    /// The record in which a store notes what it applies after this snapshot.
    private func crashRecord(
        of store: StoreName, _ life: SequenceNumber, _ log: LogID, at sequence: SequenceNumber
    ) -> CrashRecord? {
        guard let journal else { return nil }
        // Before the first store is opened, nobody may be listening. So the warning waits until now.
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

    /// Gives a store the entries after its snapshot that the log no longer holds.
    private func follow(_ replica: Replica, _ aside: Bytes) {
        do throws(WireError) {
            let entries = try AsideEntries.commits(of: aside)
            // For entries that the log no longer holds, only what was kept with them says which
            // have no effect.
            for entry in entries { noteSkips(of: entry.commit, for: replica) }
            replica.progress.phase = .catchingUp
            for entry in entries {
                apply(entry.commit, to: .only([replica.progress.subject]))
                // However many bytes these are, the store is not parked: nobody keeps them to
                // deliver them again.
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

    /// An open is answered. This is told once the store has applied what it caught up with.
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

    /// The sequencer knows that the state is bridged: for the first time, or once more.
    private func bridged(_ stores: StateStores) {
        let locals = stores.locals
        if !stores.isBridged || locals.phase == .empty {
            stores.isBridged = true
            locals.phase = .attached
            locals.delivered = delivered
            if stores.isInhabited {
                // Nothing is known of entries from before this node reached the local stores.
                locals.jump(through: delivered)
                wantFeed(for: locals)
            } else {
                locals.leave(at: .zero)
            }
        } else if locals.phase == .ready {
            wantFeed(for: locals)
        }
    }

    /// A bridged state has a local store now. It gets everything that is delivered to this node
    /// from now on. Whatever was told here before, above all by a receipt, precedes the store
    /// (P6).
    func inhabit(_ state: Name) {
        guard let stores = states[state], !stores.isInhabited else { return }
        stores.isInhabited = true
        guard stores.isBridged, stores.locals.phase == .attached else { return }
        stores.locals.delivered = delivered
        stores.locals.comeBack(at: delivered.next)
        wantFeed(for: stores.locals)
    }

    /// Asks for everything after the local stores' position. This node may not follow the feed yet.
    private func wantFeed(for locals: StoreProgress) {
        locals.phase = .ready
        report(.ready(locals.subject, through: locals.delivered, request: locals.request))
    }

    /// Notes a gap in what a bridged state's local stores catch up with. It was told as `missed`.
    func noteGap(before first: SequenceNumber, of locals: StoreProgress) {
        if first > locals.delivered.next {
            locals.jump(through: SequenceNumber(first.rawValue - 1))
        }
    }

    func complete(_ request: UInt64, _ outcome: OpenOutcome) {
        guard let (registration, isOpen) = registrations[request] else { return }
        if let error = failure(of: outcome, registration.subject) {
            unregister(registration.subject)
            // It was open in a history that is lost, so nobody waits for the completion.
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

    /// Ends the hosting of a dropped store, once everything before the end of its life is applied
    /// here.
    func drop(_ store: StoreName) {
        // The store may have been closed, or loaded anew, meanwhile.
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
