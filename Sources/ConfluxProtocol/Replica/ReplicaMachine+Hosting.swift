import ConfluxVocabulary

/// Hosting and bridging: how a node asks for stores, and gives them their snapshots (rule 16).
extension ReplicaMachine {
    mutating func host(_ open: Open, at now: Duration, into effects: inout [ReplicaEffect]) {
        if !isAnswerDue { owedSince = now }
        hosting[open.subject] = Hosting(open: open, phase: .wanted)
        // For a bridged state, the applier reports its first local store: ``ready``.
        if case .store(let store) = open.subject {
            stopped[store] = nil
            // The store's snapshot includes everything before it, so nothing is missed.
            if feed == .unwanted { live = nil }
            wantFeed(at: now, into: &effects)
        }
        sendOpens(into: &effects)
    }

    /// Sends the opens that are wanted: at once if no feed is followed, otherwise once the subscription is proven.
    mutating func sendOpens(into effects: inout [ReplicaEffect]) {
        guard phase == .joined, isFollowing || feed == .unwanted else { return }
        for open in hosting.askForWanted() { effects.append(.send(.open(open))) }
    }

    mutating func endHosting(
        of subject: HostingSubject, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard let former = hosting.remove(subject) else { return }
        var hadStopped = false
        if case .store(let store) = subject {
            hadStopped = stopped.removeValue(forKey: store) != nil
            loads.remove(store)
        }
        if feed == .unwanted, hosting.count == 0 { live = nil }
        catchUps.leave(subject)
        pumpCatchUps(at: now, into: &effects)
        if phase == .joined {
            effects.append(.send(.close(Close(subject: subject))))
        } else if former.phase != .wanted {
            closedMeanwhile.append(subject)
        }
        if hadStopped { sayStopped(at: now, into: &effects) }
    }

    /// Closes what the sequencer may take for hosted: an earlier hello named it, or its open has no answer yet.
    mutating func sayClosed(into effects: inout [ReplicaEffect]) {
        for subject in closedMeanwhile where hosting[subject] == nil {
            effects.append(.send(.close(Close(subject: subject))))
        }
        closedMeanwhile = []
    }

    mutating func opened(
        _ opened: Opened, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard let subject = hosting.asked(by: opened.request) else { return }
        switch opened.outcome {
        case .failed(let code, let message):
            self.hosting[subject] = nil
            effects.append(
                .deliver(
                    .opened(request: opened.request, .failed(code, message: message))))
        case .opened(
            let life, let version, let last, let floor, let snapshot, let aside, let skipped,
            let migrated):
            // The store's version and the skipped numbers come from entries up to `last`. If the log loses one of
            // these, the node must learn it, though it applied none of them.
            remember(log, last, of: epoch)
            hear(of: last, into: &effects)
            guard case .store(let store) = subject, let snapshot else {
                self.hosting[subject]?.phase = .opened(life: life, request: 0)
                effects.append(
                    .deliver(.opened(request: opened.request, .opened(life: life))))
                return
            }
            let start = SnapshotLoad.Start(
                floor: floor, aside: aside, skipped: skipped,
                version: VersionInForce(version, migrated: migrated))
            switch snapshot {
            case .whole(let snapshot):
                self.hosting[subject]?.phase = .loading(life: life)
                begin(store, life: life, with: snapshot, start, at: now, into: &effects)
            case .saved(let reference):
                self.hosting[subject]?.phase = .loading(life: life)
                let place = SnapshotPlace(
                    store: store, life: life, sequence: reference.sequence)
                load(place, reference, for: .opening(start), at: now, into: &effects)
            }
        }
    }

    /// Takes the snapshot of a store that is opened. What is kept aside for the store may have to
    /// be loaded first.
    mutating func begin(
        _ store: StoreName, life: SequenceNumber, with snapshot: Snapshot,
        _ start: SnapshotLoad.Start, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard let aside = start.aside else {
            restore(store, life: life, snapshot, nil, start, into: &effects)
            return
        }
        let place = SnapshotPlace(store: store, life: life, sequence: aside.sequence)
        load(place, aside, for: .following(snapshot, start), at: now, into: &effects)
    }

    /// Gives a store its snapshot. Once the store has it, it catches up from there.
    mutating func restore(
        _ store: StoreName, life: SequenceNumber, _ snapshot: Snapshot, _ aside: Bytes?,
        _ start: SnapshotLoad.Start, into effects: inout [ReplicaEffect]
    ) {
        // What the log discarded behind the snapshot did not concern the store.
        let below = SequenceNumber(max(start.floor.rawValue, 1) - 1)
        let request = nextRequest
        nextRequest += 1
        hosting[.store(store)]?.phase = .opened(life: life, request: request)
        effects.append(
            .deliver(
                .restore(
                    store, life: life, snapshot, in: start.version, aside: aside,
                    skipped: start.skipped,
                    through: max(snapshot.sequence, below, start.aside?.sequence ?? .zero),
                    request: request)))
    }

    /// Migrates a snapshot, so that the sequencer learns what comes of it (rule 17). Nothing here changes.
    mutating func migrate(
        _ migrate: Migrate, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard hosting[.store(migrate.store)] != nil else {
            // A late copy of its open has come after the answer.
            if phase == .joined {
                effects.append(.send(.close(Close(subject: .store(migrate.store)))))
            }
            return
        }
        switch migrate.snapshot {
        case .whole(let snapshot):
            effects.append(
                .deliver(
                    .migrate(migrate.store, life: migrate.life, snapshot, to: migrate.schemaVersion)
                ))
        case .saved(let reference):
            let place = SnapshotPlace(
                store: migrate.store, life: migrate.life, sequence: reference.sequence)
            loads.removeMigrating(migrate.store)
            load(place, reference, for: .migrating(migrate.schemaVersion), at: now, into: &effects)
        }
    }

    /// What a store has is of no use: it begins anew with the newest snapshot.
    mutating func reopen(
        _ store: StoreName, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard case .opened = hosting[.store(store)]?.phase else { return }
        if !isAnswerDue { owedSince = now }
        hosting[.store(store)]?.phase = .wanted
        stopped[store] = nil
        catchUps.leave(.store(store))
        sendOpens(into: &effects)
        pumpCatchUps(at: now, into: &effects)
    }
}
