import ConfluxVocabulary

/// Opening and closing stores. Rule 16 is implemented here.
///
///     open ──▶ created ──▶ hosted … ──▶ drop ──▶ dropped ──▶ (opened again: another life)
///
/// Admitted entries count at once. After a drop, nothing more is admitted for that life, and
/// whoever opens the name begins the next life.
extension SequencerMachine {
    mutating func open(
        _ open: Open, by incarnation: Incarnation, on connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        guard let session = sessions[incarnation] else { return }
        if let failure = refusal(of: open, by: session) {
            let opened = Opened(
                request: open.request, outcome: .failed(failure.0, message: failure.1))
            effects.append(.send(.opened(opened), to: connection))
            return
        }
        switch open.subject {
        case .state(let state):
            directory.bridge(
                StateBridge(
                    state: state, schemaVersion: open.schemaVersion, shapes: open.shapes),
                by: incarnation, of: session.sharer)
            let outcome = Opened.Outcome.opened(
                life: .zero, schemaVersion: open.schemaVersion, last: tenure.last,
                floor: tenure.floor, snapshot: nil)
            effects.append(
                .send(.opened(Opened(request: open.request, outcome: outcome)), to: connection))
        case .store(let name):
            let opener = Opener(
                incarnation: incarnation, request: open.request, sharer: session.sharer)
            if directory.beginnings[name] != nil {
                directory.wait(opener, forBeginningOf: name)
            } else if let life = directory.life(of: name), !life.isEnding {
                openPresent(life, named: name, open.schemaVersion, for: opener, into: &effects)
            } else {
                let life = pipeline.admit(
                    .created(name, schemaVersion: open.schemaVersion, initial: open.initial),
                    by: session.owner, then: .created(name))
                directory.begin(
                    StoreBeginning(
                        life: life, schemaVersion: open.schemaVersion, initial: open.initial,
                        creator: session.owner, opener: opener), named: name)
            }
        }
    }

    /// Opens a store that exists. A version newer than the store's needs an `upgraded` entry first
    /// (rule 17).
    private mutating func openPresent(
        _ life: StoreLife, named name: StoreName, _ schemaVersion: UInt32, for opener: Opener,
        into effects: inout [SequencerEffect]
    ) {
        if case .upgraded(let version, _)? = life.work.word?.kind {
            // If it is another version than the one on its way, the node has to ask again.
            if version == schemaVersion { directory.change(name) { $0.wait(opener) } }
        } else if schemaVersion > life.record.schemaVersion {
            // The store's base, from which it would be migrated, can't be used yet.
            guard !isHeldOff(opener, from: name, into: &effects) else { return }
            // From here on no snapshot of the former version becomes the base of openers.
            directory.change(name) { $0.giveUpUpload() }
            // The part that the log is saving may complete a snapshot that replaces the base of the
            // migration. In that case, and if there is no room, the request gets no answer, and the
            // node asks again.
            guard life.work.save == nil, pipeline.hasRoom(bytes: 0),
                say(
                    .upgraded(schemaVersion: schemaVersion, base: life.record.baseSequence),
                    of: name, by: sessions[opener.incarnation]?.owner)
            else { return }
            directory.change(name) {
                $0.forgetVotes()
                $0.wait(opener)
            }
        } else {
            host(name, for: opener, into: &effects)
        }
    }

    private func refusal(of open: Open, by session: Session) -> (RejectionCode, String)? {
        let isFull = (
            RejectionCode.tableFull,
            "the sequencer has reached its limit of stores, or this key its share of them; close "
                + "and drop some, or raise the limit"
        )
        if open.schemaVersion < 1 { return (.schemaVersion, "schema versions begin with 1") }
        switch open.subject {
        case .state(let state):
            return hasRoom(forState: state, of: session.sharer) ? nil : isFull
        case .store(let name):
            if let present = directory.admittedLife(of: name) {
                let beginning = directory.beginnings[name]
                let word = directory.life(of: name)?.work.word
                if let openers = beginning?.openers ?? word?.openers,
                    !openers.hasRoom(for: session.sharer)
                {
                    return isFull
                }
                var version = present.schemaVersion
                if beginning == nil, case .upgraded(let newer, _)? = word?.kind { version = newer }
                // A newer version upgrades the store, unless the store is only about to be created.
                let isUpgrade = open.schemaVersion > version && beginning == nil
                return open.schemaVersion == version || isUpgrade
                    ? nil : versionMismatch(open.schemaVersion, version, name)
            }
            let bytes = open.initial.bytes.count
            if bytes > Int(settings.initialStateBytesMax) {
                return (
                    .payloadTooLarge,
                    "the first state of \(name) has \(bytes) bytes and the limit is "
                        + "\(settings.initialStateBytesMax)"
                )
            }
            if isLogNearlyFull {
                return (.tableFull, "\(name) can't be created: \(nearlyFullWords)")
            }
            let hasRoom =
                directory.stores.hasRoom(for: session.owner, of: settings.storesMax)
                && directory.initialBytes.hasRoom(
                    for: session.owner, bytes, of: settings.initialStatesBytesMax)
                && pipeline.hasRoom(bytes: bytes)
                && self.hasRoom(forState: name.state, of: session.owner.map { .key($0) })
            return hasRoom ? nil : isFull
        }
    }

    private func versionMismatch(
        _ asked: UInt32, _ present: UInt32, _ name: StoreName
    ) -> (RejectionCode, String) {
        (
            .schemaVersion,
            "\(name) has schema version \(present) and this node has \(asked): "
                + (asked < present
                    ? "a store does not go back to an older version; run a newer program"
                    : "it is being created; open it again")
        )
    }

    /// Whether a state is known, or there is room for it.
    private func hasRoom(forState state: Name, of sharer: Sharer?) -> Bool {
        directory.knows(state: state)
            || directory.states.shares.hasRoom(for: sharer, of: settings.statesMax)
    }

    /// A node hosts a store from here on: it waited for the store, or does not need to.
    mutating func host(
        _ name: StoreName, for opener: Opener, into effects: inout [SequencerEffect]
    ) {
        guard let session = sessions[opener.incarnation], session.presence == .live,
            let store = directory.store(name), !isHeldOff(opener, from: name, into: &effects)
        else { return }
        directory.host(name, schemaVersion: store.schemaVersion, by: opener.incarnation)
        guard let connection = session.connection else { return }
        let outcome = Opened.Outcome.opened(
            life: store.life, schemaVersion: store.schemaVersion, last: tenure.last,
            floor: readingFloor(of: name), snapshot: store.offer, aside: store.aside?.reference,
            skipped: directory.skips(of: name)
        )
        effects.append(
            .send(.opened(Opened(request: opener.request, outcome: outcome)), to: connection))
        reviewPoint(of: name)
        thawHosted(name)
    }

    /// The `created` entry is in the log: the store's life begins, and its openers are answered.
    mutating func created(
        _ name: StoreName, at sequence: SequenceNumber, into effects: inout [SequencerEffect]
    ) {
        guard let beginning = directory.created(name, at: sequence) else {
            preconditionFailure("\(name) was created without an opener")
        }
        effects.append(.note(.created(name, life: sequence)))
        for opener in beginning.openers.all { host(name, for: opener, into: &effects) }
    }

    mutating func endHosting(of subject: HostingSubject, by incarnation: Incarnation) {
        switch subject {
        case .store(let name): directory.endHosting(of: name, by: incarnation)
        case .state(let state): directory.endBridge(state, by: incarnation)
        }
    }

    /// Accepts what a hello says its node hosts, since hosting has no entry in the log.
    mutating func restateHosting(_ hello: Hello, of incarnation: Incarnation) {
        for name in directory.restate(hello.hosted, by: incarnation) {
            reviewPoint(of: name)
            thawHosted(name)
        }
        guard let sharer = sessions[incarnation]?.sharer else { return }
        for bridged in hello.bridged where hasRoom(forState: bridged.state, of: sharer) {
            directory.bridge(bridged, by: incarnation, of: sharer)
        }
    }
}
