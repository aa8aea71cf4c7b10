import ConfluxVocabulary

/// Opening, closing and dropping of stores: the one place of rule 16.
///
///     open ──▶ created ──▶ hosted … ──▶ drop ──▶ dropped ──▶ (opened again: another life)
///
/// What is admitted counts at once: behind a drop nothing is admitted for that life, and who opens
/// the name begins the next one.
extension SequencerMachine {
    /// Opens whose `created` entry is not in the log yet. The first opener's state counts.
    struct PendingCreation: Sendable {
        var life: SequenceNumber
        var schemaVersion: UInt32
        var initial: EncodedState
        var openers: [Opener]
    }

    /// A store whose `upgraded` entry is not in the log yet.
    struct PendingUpgrade: Sendable {
        var life: SequenceNumber
        var schemaVersion: UInt32
        /// The snapshot that is migrated.
        var base: SequenceNumber
        var openers: [Opener]
    }

    /// Who waits for a store to begin.
    struct Opener: Sendable {
        var incarnation: Incarnation
        var request: UInt64
    }

    /// The most openers that wait for one store to begin. *At the bound*: the open fails with
    /// `tableFull`, and the node may try again.
    private static let openersMax = 1_024

    /// A life whose `dropped` entry is not in the log yet.
    struct PendingDrop: Sendable {
        var life: SequenceNumber
        var askers: [Asker]
    }

    /// The most askers that wait for one life to end. *At the bound* one is left without an answer:
    /// it asks again.
    private static let askersMax = 1_024

    /// The life that entries are admitted for: its `created` entry may still be on its way.
    func admittedLife(of name: StoreName) -> (life: SequenceNumber, schemaVersion: UInt32)? {
        if let pending = creating[name] { return (pending.life, pending.schemaVersion) }
        guard dropping[name] == nil, let store = directory.store(name) else { return nil }
        return (store.life, store.schemaVersion)
    }

    mutating func open(
        _ open: Open, by incarnation: Incarnation, on connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        if let failure = refusal(of: open) {
            let opened = Opened(
                request: open.request, outcome: .failed(failure.0, message: failure.1))
            effects.append(.send(.opened(opened), to: connection))
            return
        }
        switch open.subject {
        case .state(let state):
            if sessions[incarnation]?.bridged.insert(state).inserted == true {
                directory.addBridge(state)
            }
            let outcome = Opened.Outcome.opened(
                life: .zero, schemaVersion: open.schemaVersion, floor: tenure.floor, snapshot: nil)
            effects.append(
                .send(.opened(Opened(request: open.request, outcome: outcome)), to: connection))
        case .store(let name):
            let opener = Opener(incarnation: incarnation, request: open.request)
            if creating[name] != nil {
                creating[name]?.openers.append(opener)
            } else if let store = directory.store(name), dropping[name] == nil {
                openPresent(store, named: name, open.schemaVersion, for: opener, into: &effects)
            } else {
                directory.expect(name, initial: open.initial)
                let life = pipeline.admit(
                    .created(name, schemaVersion: open.schemaVersion, initial: open.initial),
                    then: .created(name))
                creating[name] = PendingCreation(
                    life: life, schemaVersion: open.schemaVersion, initial: open.initial,
                    openers: [opener])
            }
        }
    }

    /// Opens a store that is there; in a newer version than it has by an entry (rule 17).
    private mutating func openPresent(
        _ store: StoreRecord, named name: StoreName, _ schemaVersion: UInt32, for opener: Opener,
        into effects: inout [SequencerEffect]
    ) {
        if let pending = upgrading[name] {
            // Another version than the one that is on its way: it is asked for again.
            if pending.schemaVersion == schemaVersion { upgrading[name]?.openers.append(opener) }
        } else if schemaVersion > store.schemaVersion {
            // What the log saves just now may take the place of the snapshot that is to be migrated:
            // it is left unanswered, and asked for again.
            guard !uploads.isSaving(name) else {
                uploads.remove(name)
                return
            }
            // Without room it is left unanswered, and asked for again.
            guard pipeline.hasRoom(bytes: 0) else { return }
            upgrading[name] = PendingUpgrade(
                life: store.life, schemaVersion: schemaVersion, base: store.baseSequence,
                openers: [opener])
            // From here on no snapshot of the former version becomes what openers begin with.
            uploads.remove(name)
            digests.forget(name)
            pipeline.admit(
                .upgraded(
                    name, life: store.life, schemaVersion: schemaVersion,
                    base: store.baseSequence), then: .upgraded(name))
        } else {
            host(store, named: name, for: opener, into: &effects)
        }
    }

    /// The `upgraded` entry is in the log: the openers get the snapshot that it names.
    mutating func upgraded(
        _ name: StoreName, at sequence: SequenceNumber, into effects: inout [SequencerEffect]
    ) {
        guard let pending = upgrading.removeValue(forKey: name) else {
            preconditionFailure("\(name) was upgraded without an opener")
        }
        uploads.remove(name)
        digests.forget(name)
        directory.note(
            .upgraded(
                name, life: pending.life, schemaVersion: pending.schemaVersion,
                base: pending.base), at: sequence)
        guard let store = directory.store(name), store.life == pending.life else { return }
        effects.append(.note(.upgraded(name, schemaVersion: pending.schemaVersion)))
        for opener in pending.openers where sessions[opener.incarnation]?.presence == .live {
            host(store, named: name, for: opener, into: &effects)
        }
    }

    private func refusal(of open: Open) -> (RejectionCode, String)? {
        let isFull = (
            RejectionCode.tableFull,
            "the sequencer knows as many stores as it may; close and drop some, or raise its limit"
        )
        switch open.subject {
        case .state(let state):
            let isNew = !directory.knows(state: state)
            return isNew && directory.stateCount >= settings.statesMax ? isFull : nil
        case .store(let name):
            if let present = admittedLife(of: name) {
                if let pending = creating[name], pending.openers.count >= Self.openersMax {
                    return isFull
                }
                if let pending = upgrading[name], pending.openers.count >= Self.openersMax {
                    return isFull
                }
                let version = max(
                    present.schemaVersion, upgrading[name]?.schemaVersion ?? 0)
                return versionMismatch(open.schemaVersion, version, name)
            }
            let bytes = open.initial.bytes.count
            if bytes > Int(settings.initialStateBytesMax) {
                return (
                    .payloadTooLarge,
                    "the first state of \(name) has \(bytes) bytes and the limit is "
                        + "\(settings.initialStateBytesMax)"
                )
            }
            let isFullOfStores = directory.stores.count + creating.count >= settings.storesMax
            let isFullOfBytes = directory.initialBytes + bytes > settings.initialStatesBytesMax
            let isFullOfCommit = !pipeline.hasRoom(bytes: bytes)
            let isFullOfStates =
                !directory.knows(state: name.state) && directory.stateCount >= settings.statesMax
            return isFullOfStores || isFullOfBytes || isFullOfCommit || isFullOfStates
                ? isFull : nil
        }
    }

    private func versionMismatch(
        _ asked: UInt32, _ present: UInt32, _ name: StoreName
    ) -> (RejectionCode, String)? {
        // What is newer upgrades the store, but for one that is only about to begin.
        let isUpgrade = asked > present && creating[name] == nil
        guard asked != present, !isUpgrade else { return nil }
        return (
            .schemaVersion,
            "\(name) has schema version \(present) and this node has \(asked): "
                + (asked < present
                    ? "a store does not go back to an older version; run a newer program"
                    : "it is being created; open it again")
        )
    }

    private mutating func host(
        _ store: StoreRecord, named name: StoreName, for opener: Opener,
        into effects: inout [SequencerEffect]
    ) {
        sessions[opener.incarnation]?.hosted[name] = HostedStore(
            store: name, life: store.life, schemaVersion: store.schemaVersion)
        guard let connection = sessions[opener.incarnation]?.connection else { return }
        let outcome = Opened.Outcome.opened(
            life: store.life, schemaVersion: store.schemaVersion, floor: tenure.floor,
            snapshot: store.offer, aside: store.aside?.reference, skipped: directory.skips(of: name)
        )
        effects.append(
            .send(.opened(Opened(request: opener.request, outcome: outcome)), to: connection))
        sessions[opener.incarnation]?.stopped[name] = nil
        reviewPoint(of: name)
        thawHosted(name)
    }

    /// A store that was frozen because nobody hosted it is hosted again (rule 21).
    mutating func thawHosted(_ name: StoreName) {
        guard let store = directory.store(name), store.freezing?.reason == .abandoned else {
            return
        }
        decide(.thaw(name, life: store.life), for: nil)
    }

    /// The `created` entry is in the log: the store's life begins, and its openers are answered.
    mutating func created(
        _ name: StoreName, at sequence: SequenceNumber, into effects: inout [SequencerEffect]
    ) {
        guard let pending = creating.removeValue(forKey: name) else {
            preconditionFailure("\(name) was created without an opener")
        }
        let store = StoreRecord(
            life: sequence, schemaVersion: pending.schemaVersion, initial: pending.initial)
        directory.begin(store, named: name)
        effects.append(.note(.created(name, life: sequence)))
        for opener in pending.openers where sessions[opener.incarnation]?.presence == .live {
            host(store, named: name, for: opener, into: &effects)
        }
    }

    /// Ends a life, by an entry. One that is over already stays over.
    mutating func drop(
        _ drop: Drop, from connection: ConnectionID, into effects: inout [SequencerEffect]
    ) {
        let asker = Asker(connection: connection, request: drop.request)
        if let pending = dropping[drop.store], pending.life == drop.life {
            guard pending.askers.count < Self.askersMax, !pending.askers.contains(asker) else {
                return
            }
            dropping[drop.store]?.askers.append(asker)
            return
        }
        // What is not in the log yet is dropped when it is asked for again.
        guard creating[drop.store]?.life != drop.life else { return }
        guard directory.store(drop.store)?.life == drop.life else {
            confirm(tenure.last, to: asker, into: &effects)
            return
        }
        guard pipeline.hasRoom(bytes: 0) else { return }
        dropping[drop.store] = PendingDrop(life: drop.life, askers: [asker])
        // A word on this life says nothing of the next one.
        freezesUnderWay[drop.store] = nil
        pipeline.admit(.dropped(drop.store, life: drop.life), then: .dropped(drop.store))
    }

    /// The `dropped` entry is in the log: nobody hosts that life any more.
    mutating func dropped(
        _ name: StoreName, at sequence: SequenceNumber, into effects: inout [SequencerEffect]
    ) {
        guard let pending = dropping.removeValue(forKey: name) else {
            preconditionFailure("\(name) was dropped, and nobody asked for it")
        }
        directory.end(name, life: pending.life)
        digests.forget(name)
        uploads.remove(name)
        points.forget(name)
        effects.append(.removeSnapshots(name))
        for session in sessions.all where session.hosted[name]?.life == pending.life {
            sessions[session.incarnation]?.hosted[name] = nil
        }
        effects.append(.note(.dropped(name, life: pending.life)))
        for asker in pending.askers { confirm(sequence, to: asker, into: &effects) }
    }

    mutating func endHosting(of subject: HostingSubject, by incarnation: Incarnation) {
        switch subject {
        case .store(let name):
            sessions[incarnation]?.hosted[name] = nil
            sessions[incarnation]?.stopped[name] = nil
            digests.pass(over: incarnation, for: name)
            upgrading[name]?.openers.removeAll { $0.incarnation == incarnation }
            creating[name]?.openers.removeAll { $0.incarnation == incarnation }
        case .state(let state):
            if sessions[incarnation]?.bridged.remove(state) != nil {
                directory.removeBridge(state)
            }
        }
    }

    /// Takes a hello's word for what its node hosts: hosting is no entry.
    mutating func restateHosting(_ hello: Hello, of incarnation: Incarnation) {
        endHosting(by: incarnation)
        for hosted in hello.hosted where directory.store(hosted.store)?.life == hosted.life {
            sessions[incarnation]?.hosted[hosted.store] = hosted
            reviewPoint(of: hosted.store)
            thawHosted(hosted.store)
        }
        for state in hello.bridged {
            guard
                directory.knows(state: state) || directory.stateCount < settings.statesMax,
                sessions[incarnation]?.bridged.insert(state).inserted == true
            else { continue }
            directory.addBridge(state)
        }
    }

    /// A node that is not present hosts nothing.
    mutating func endHosting(by incarnation: Incarnation) {
        for state in sessions[incarnation]?.bridged ?? [] { directory.removeBridge(state) }
        for name in sessions[incarnation]?.hosted.keys.sorted() ?? [] {
            digests.pass(over: incarnation, for: name)
        }
        sessions[incarnation]?.bridged = []
        sessions[incarnation]?.hosted = [:]
        sessions[incarnation]?.stopped = [:]
    }
}
