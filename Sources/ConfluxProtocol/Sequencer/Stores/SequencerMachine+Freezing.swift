import ConfluxVocabulary

/// What is decided about stores by an entry of its own: freezing (rule 21) and skipping (rule 23).
extension SequencerMachine {
    /// Something that is decided once its entry is in the log.
    enum Decision: Sendable, Hashable {
        case freeze(StoreName, life: SequenceNumber, FreezeReason)
        case thaw(StoreName, life: SequenceNumber)
        case skip(SequenceNumber, Target)

        var event: LogEvent {
            switch self {
            case .freeze(let name, let life, let reason): .frozen(name, life: life, reason: reason)
            case .thaw(let name, let life): .thawed(name, life: life)
            case .skip(let sequence, let target): .skipped(sequence, target)
            }
        }
    }

    /// The most askers that wait for one decision. *At the bound* one is left without an answer: it
    /// asks again.
    private static let decisionAskersMax = 1_024

    /// Whether no entry is admitted for a store: the word may still be on its way to the log.
    func isFrozenAtAdmission(_ name: StoreName) -> Bool {
        freezesUnderWay[name] ?? (directory.store(name)?.isFrozen == true)
    }

    mutating func freeze(
        _ freeze: Freeze, from connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        let asker = Asker(connection: connection, request: freeze.request)
        guard let present = admittedLife(of: freeze.store), present.life == freeze.life,
            directory.store(freeze.store)?.life == freeze.life
        else {
            let text = "there is no such store, or it has another life by now"
            refuse(.otherLife, text, to: asker, into: &effects)
            return
        }
        let decision: Decision =
            freeze.isFrozen
            ? .freeze(freeze.store, life: freeze.life, .asked)
            : .thaw(freeze.store, life: freeze.life)
        let isSettled = freezesUnderWay[freeze.store] == nil
        if isSettled, directory.store(freeze.store)?.isFrozen == freeze.isFrozen {
            confirm(tenure.last, to: asker, into: &effects)
        } else if isSettled || freezesUnderWay[freeze.store] == freeze.isFrozen,
            pipeline.hasRoom(bytes: 0)
        {
            decide(decision, for: asker)
        }
        // Else the contrary is on its way to the log, or there is no room: who asks asks again.
    }

    mutating func skip(
        _ skip: Skip, from connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        let asker = Asker(connection: connection, request: skip.request)
        let entry = SkippedEntry(sequence: skip.sequence, target: skip.target)
        guard !directory.skips.contains(entry) else {
            confirm(tenure.last, to: asker, into: &effects)
            return
        }
        if let reason = reasonNotToSkip(entry) {
            // Replicas that stopped there need not wait for a snapshot that is there already.
            for (name, store) in directory.stores.sorted(by: { $0.key < $1.key })
            where skip.target.concerns(name) && store.baseSequence >= skip.sequence {
                let place = SnapshotPlace(
                    store: name, life: store.life, sequence: store.baseSequence)
                tellReload(of: place, into: &effects)
            }
            refuse(.passed, reason, to: asker, into: &effects)
            return
        }
        let pending = decisions.keys.count { if case .skip = $0 { true } else { false } }
        guard directory.skips.count + pending < StoreDirectory.skipsMax else {
            let text = "as many entries are skipped as may be; they are forgotten with the log"
            refuse(.tableFull, text, to: asker, into: &effects)
            return
        }
        guard pipeline.hasRoom(bytes: 0) else { return }
        decide(.skip(skip.sequence, skip.target), for: asker)
    }

    /// Why an entry can't be skipped: a replica has applied it, or may have.
    private mutating func reasonNotToSkip(_ skip: SkippedEntry) -> String? {
        let isThere =
            skip.sequence >= tenure.floor || directory.isKeptAside(skip.sequence, skip.target)
        guard isThere, skip.sequence <= tenure.last else {
            return "the log holds entries \(tenure.floor) to \(tenure.last)"
        }
        for (name, store) in directory.stores where skip.target.concerns(name) {
            guard store.baseSequence < skip.sequence else {
                return
                    "the snapshot of \(name) at \(store.baseSequence) has entry \(skip.sequence) "
                    + "in it: replicas that stopped begin there when they are opened again"
            }
        }
        for name in directory.stores.keys where skip.target.concerns(name) {
            // A replica that is gone by now may have had the entry, and its state be on its way.
            let isComing = uploads[name].map { $0.place.sequence >= skip.sequence } ?? false
            if isComing || uploads.isSaving(name) {
                return "a snapshot of \(name) is being saved; ask again"
            }
        }
        for session in sessions.all where session.presence == .live {
            for name in session.hosted.keys where skip.target.concerns(name) {
                if let stopped = session.stopped[name], stopped <= skip.sequence { continue }
                let node = session.name?.text ?? "\(session.incarnation)"
                guard session.applied >= skip.sequence else {
                    return "node \(node) hosts \(name) and has not come to entry "
                        + "\(skip.sequence) yet; ask again"
                }
                // Those that stopped get its state. Most of them are not there now: a process that
                // died of the entry could not even open the store. One snapshot is enough, since
                // that has the entry in it.
                points.due.insert(name)
                points.wanted.insert(name)
                return "node \(node) has applied entry \(skip.sequence) to \(name): replicas that "
                    + "stopped there get its state instead"
            }
        }
        return nil
    }

    /// Admits the entry of a decision, unless it is on its way.
    mutating func decide(_ decision: Decision, for asker: Asker?) {
        if decisions[decision] == nil {
            // One word on a store at a time.
            if let subject = decision.subject, freezesUnderWay[subject] != nil { return }
            decisions[decision] = []
            pipeline.admit(decision.event, then: .decided(decision))
            switch decision {
            case .freeze(let name, _, _): freezesUnderWay[name] = true
            case .thaw(let name, _): freezesUnderWay[name] = false
            case .skip(let sequence, let target):
                // What was said of later points was said with the entry.
                for name in directory.stores.keys where target.concerns(name) {
                    if let round = digests.round(of: name), round.place.sequence >= sequence {
                        digests.forget(name)
                    }
                }
            }
        }
        if let asker, decisions[decision, default: []].count < Self.decisionAskersMax,
            decisions[decision]?.contains(asker) == false
        {
            decisions[decision]?.append(asker)
        }
    }

    mutating func decided(
        _ decision: Decision, at sequence: SequenceNumber, into effects: inout [SequencerEffect]
    ) {
        directory.note(decision.event, at: sequence)
        switch decision {
        case .freeze(let name, _, let reason):
            freezesUnderWay[name] = nil
            effects.append(.note(.frozen(name, reason)))
            // Somebody may have come for it meanwhile.
            if reason == .abandoned, hostedStores.contains(name) { thawHosted(name) }
        case .thaw(let name, _):
            freezesUnderWay[name] = nil
            effects.append(.note(.thawed(name)))
        case .skip(let skipped, let target):
            effects.append(.note(.skipped(skipped, target)))
        }
        for asker in decisions.removeValue(forKey: decision) ?? [] {
            confirm(sequence, to: asker, into: &effects)
        }
    }

    /// A store whose replicas did not agree for a bound of log is frozen (rule 19).
    mutating func freezeUnconfirmed(_ name: StoreName, _ round: DigestTable.Round) {
        guard let store = directory.store(name) else { return }
        // How much came since a snapshot of before the start is not known: it counts from here on.
        if case .saved = store.base, points.snapshotLoads[name] == nil {
            points.snapshotLoads[name] = round.load
        }
        let since = points.snapshotLoads[name, default: 0]
        guard round.load - min(round.load, since) >= settings.unconfirmedBytesMax,
            !isFrozenAtAdmission(name)
        else { return }
        decide(.freeze(name, life: store.life, .unconfirmed), for: nil)
    }

    private func refuse(
        _ code: RejectionCode, _ text: String, to asker: Asker,
        into effects: inout [SequencerEffect]
    ) {
        let confirmed = Confirmed(request: asker.request, outcome: .failed(code, message: text))
        effects.append(.send(.confirmed(confirmed), to: asker.connection))
    }
}

extension SequencerMachine.Decision {
    /// The store that it is about.
    fileprivate var subject: StoreName? {
        switch self {
        case .freeze(let name, _, _), .thaw(let name, _): name
        case .skip: nil
        }
    }
}
