import ConfluxVocabulary

/// Opening and closing stores. Rule 16 is implemented here.
///
///     open ──▶ created ──▶ hosted … ──▶ drop ──▶ dropped ──▶ (opened again: another life)
///
/// Admitted entries count at once. After a drop, nothing more is admitted for that life, and
/// whoever opens the name begins the next life.
extension SequencerMachine {
    mutating func open(
        _ open: Open, by incarnation: Incarnation, on connection: ConnectionID, at now: Moment,
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
            // An event that is sent once the state is open reaches all of its stores, whatever happens in between.
            let new = open.events.filter { !directory.states.handles($0, in: state) }
            guard new.isEmpty else {
                let event = LogEvent.handles(state, events: new)
                pipeline.admit(
                    event, by: session.owner,
                    then: .handles(event, by: session.owner, open, of: incarnation))
                return
            }
            directory.bridge(
                StateBridge(
                    state: state, schemaVersion: open.versions.newest, shapes: open.shapes),
                by: incarnation, of: session.sharer)
            let outcome = Opened.Outcome.opened(
                life: .zero, schemaVersion: open.versions.newest, last: term.last,
                floor: term.floor, snapshot: nil)
            effects.append(
                .send(.opened(Opened(request: open.request, outcome: outcome)), to: connection))
        case .store(let name):
            let opener = Opener(
                incarnation: incarnation, request: open.request, versions: open.versions,
                sharer: session.sharer)
            if directory.beginnings[name] != nil {
                directory.wait(opener, forBeginningOf: name)
            } else if let life = directory.life(of: name), !life.isEnding {
                openPresent(life, named: name, for: opener, at: now, into: &effects)
            } else {
                let version = open.versions.oldest
                let life = pipeline.admit(
                    .created(name, schemaVersion: version, initial: open.initial),
                    by: session.owner, then: .created(name))
                directory.begin(
                    StoreBeginning(
                        life: life, schemaVersion: version, initial: open.initial,
                        creator: session.owner, opener: opener), named: name)
            }
        }
    }

    /// Opens a store that exists. A node that can't host its present version may raise it (rule 17).
    private mutating func openPresent(
        _ life: StoreLife, named name: StoreName, for opener: Opener, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        if case .upgraded(let version, _, _)? = life.work.word?.kind {
            // If it is another version than the one on its way, the node has to ask again.
            if opener.versions.contains(version) { directory.change(name) { $0.wait(opener) } }
            return
        }
        if let failure = life.work.riseFailure, failure.openers.contains(opener) {
            // The answer may have been lost. It is no other attempt.
            if !opener.versions.contains(life.record.schemaVersion),
                life.work.wish(at: now.monotonic, for: opener.versions.newest) == nil
            {
                fail([opener], .upgradeFailed, failure.answer, into: &effects)
                return
            }
        } else if opener.versions.newest > life.record.schemaVersion {
            directory.change(name) { work in
                if work.riseFailure?.heldEntries == false { work.riseFailure = nil }
            }
        }
        guard opener.versions.contains(life.record.schemaVersion) else {
            openNewer(life, named: name, for: opener, at: now, into: &effects)
            return
        }
        if let rise = life.work.rise {
            if !opener.versions.contains(rise.version) {
                let text = "a node that does not understand it has opened the store"
                endRise(of: name, failing: text, isOver: false, at: now.monotonic, into: &effects)
            } else if let text = obstacle(
                to: name, with: opener.versions, isTold: rise.wish.isTold)
            {
                endRise(of: name, failing: text, isOver: false, at: now.monotonic, into: &effects)
            } else if rise.step == .rehearsing {
                directory.change(name) { $0.rise?.add(opener.incarnation) }
            } else if rise.step.isHolding {
                directory.change(name) { $0.rise?.openers.add(opener) }
                return
            }
        }
        host(name, for: opener, into: &effects)
    }

    private func refusal(of open: Open, by session: Session) -> (RejectionCode, String)? {
        let isFull = (
            RejectionCode.tableFull,
            "the sequencer has reached its limit of stores, or this key its share of them; close "
                + "and drop some, or raise the limit"
        )
        if open.versions.oldest < 1 { return (.schemaVersion, "schema versions begin with 1") }
        switch open.subject {
        case .state(let state):
            guard directory.states.hasRoom(for: open.events, in: state) else {
                let text =
                    "\(state) handles more than \(StateTable.eventsMax) events, or an event is handled by more than "
                    + "\(StateTable.handlersMax) states; handle fewer"
                return (.tableFull, text)
            }
            if open.events.contains(where: { !directory.states.handles($0, in: state) }) {
                if isLogNearlyFull {
                    return (.tableFull, "\(state) can't be bridged: \(nearlyFullWords)")
                }
                if !pipeline.hasRoom(bytes: open.events.count * Name.lengthMax) { return isFull }
            }
            return hasRoom(forState: state, of: session.sharer) ? nil : isFull
        case .store(let name):
            if let present = directory.admittedLife(of: name) {
                let beginning = directory.beginnings[name]
                let word = directory.life(of: name)?.work.word
                let rise = directory.life(of: name)?.work.rise
                if let openers = beginning?.openers ?? word?.openers ?? rise?.openers,
                    !openers.hasRoom(for: session.sharer)
                {
                    return isFull
                }
                var version = present.schemaVersion
                if case .upgraded(let newer, _, _)? = word?.kind { version = newer }
                // A newer program may raise the version, unless the store is only about to be created.
                let isNewer = open.versions.oldest > version && beginning == nil
                return open.versions.contains(version) || isNewer
                    ? nil : versionMismatch(open.versions.newest, version, name)
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
            directory.store(name) != nil, !isHeldOff(opener, from: name, into: &effects),
            let outcome = opening(of: name)
        else { return }
        directory.host(name, as: opener.versions, by: opener.incarnation)
        guard let connection = session.connection else { return }
        effects.append(
            .send(.opened(Opened(request: opener.request, outcome: outcome)), to: connection))
        reviewPoint(of: name)
        thawHosted(name)
    }

    /// What somebody begins with who gets a store's state from here on; nil if there is no such store.
    func opening(of name: StoreName) -> Opened.Outcome? {
        directory.store(name).map { store in
            .opened(
                life: store.life, schemaVersion: store.schemaVersion, last: term.last,
                floor: readingFloor(of: name), snapshot: store.offer,
                aside: store.aside?.reference, skipped: directory.skips(of: name),
                migrated: store.offerMigrated)
        }
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
        case .store(let name):
            // Its migration has not failed.
            directory.change(name) { $0.rise?.askAgain(incarnation) }
            directory.endHosting(of: name, by: incarnation)
        case .state(let state): directory.endBridge(state, by: incarnation)
        }
    }

    mutating func progress(
        _ progress: Progress, of incarnation: Incarnation, as principal: Principal
    ) {
        sessions.change(incarnation) { $0.settle(through: progress.settled) }
        sessions.advance(incarnation, to: min(progress.applied, term.last))
        // A node may have stopped what it does not host: what it could not open.
        let stopped = progress.stopped.filter {
            principal.rights.allow(.host, .store($0.store))
        }
        directory.stop(stopped, of: incarnation)
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
