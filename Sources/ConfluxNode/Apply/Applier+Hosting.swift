import Conflux
import ConfluxProtocol

/// What is hosted here: how it begins, and how it ends.
extension Applier {
    func register(_ registration: Registration) {
        registrations.add(registration)
        let applier = appliers[registration.state] ?? registration.makeApplier()
        appliers[registration.state] = applier
        registration.attach(applier)
        // Opens and closes reach the link by this thread alone, and so in this order.
        tell(.open(registration.open))
    }

    /// Whoever waited for it has given up, or is told by who calls.
    ///
    /// - Returns: What was registered, and whether it was open.
    @discardableResult
    func unregister(_ subject: HostingSubject) -> [RegistrationTable.Entry] {
        let former = registrations.remove(subject)
        switch subject {
        case .store(let store):
            appliers[store.state]?.remove(store)
            shelf.remove(store)
            if appliers[store.state]?.isIdle == true { appliers[store.state] = nil }
        case .state(let state):
            appliers[state]?.isBridged = false
            if appliers[state]?.isIdle == true { appliers[state] = nil }
        }
        tell(.close(subject))
        return former
    }

    func restore(
        _ store: StoreName, life: SequenceNumber, _ snapshot: Snapshot,
        _ aside: Bytes?, _ skipped: [SequenceNumber], _ request: UInt64, _ log: LogID
    ) {
        guard let hosted = appliers[store.state]?.hosted(store) else { return }
        hosted.detach()
        // What follows, the end of the open above all, waits until the store has its state.
        let record = CommitRecord(
            last: .zero, byteCount: 0, isCatchUp: true, whenDone: resume)
        record.expectRun()
        hosted.restore(
            snapshot, life: life, log: log, request: request,
            in: (background, post, inPlaceBytesMax),
            crashes: crashRecord(of: store, life, log, at: snapshot.sequence)
        ) { error in
            record.report(error.map { [(snapshot.sequence, .refused($0))] } ?? [])
        }
        hosted.skips = Set(skipped)
        record.seal()
        line.append(.restored(store, request: request, record, aside: aside))
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
    func follow(_ store: StoreName, _ aside: Bytes) {
        do throws(WireError) {
            let entries = try AsideEntries.commits(of: aside)
            // Of what the log holds no longer nobody tells but what was kept with it.
            for entry in entries { noteSkips(of: entry.commit, for: store) }
            for entry in entries {
                apply(entry.commit, byteCount: 0, isCatchUp: true, only: store)
            }
        } catch {
            appliers[store.state]?.hosted(store)?.stopped =
                "what is kept of \(store) beside the log can't be read: \(error)"
        }
    }

    /// Notes which entries have no effect on a store, before it gets any.
    private func noteSkips(of commit: Commit, for store: StoreName) {
        for block in commit.blocks {
            guard case .event(.skipped(let sequence, let target)) = block, target.concerns(store)
            else { continue }
            appliers[store.state]?.hosted(store)?.skips.insert(sequence)
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
        if case .state(let state) = registration.subject { appliers[state]?.isBridged = true }
        registration.completion(.success(life))
    }

    /// What stands before the end of a store's life is applied here: nobody hosts it any more.
    func drop(_ store: StoreName) {
        // It may have been closed, or loaded anew, meanwhile.
        guard appliers[store.state]?.hosted(store)?.isDropped == true else { return }
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
                code: .openFailed, message: "\(subject.text) can't be opened (\(code)): \(message)")
        case .opened:
            guard case .store(let store) = subject,
                let hosted = appliers[store.state]?.hosted(store), let message = hosted.stopped
            else { return nil }
            return NodeError(
                code: hosted.stoppedAt == nil ? .openFailed : .storeStopped, message: message)
        }
    }
}
