import ConfluxVocabulary

/// Loads snapshots (rule 19), for stores that are opened and for comparisons (rule 22).
extension ReplicaMachine {
    mutating func load(
        _ place: SnapshotPlace, _ reference: SnapshotReference, for purpose: SnapshotLoad.Purpose,
        at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        let load = SnapshotLoad(place, reference, for: purpose)
        guard reference.byteCount <= settings.snapshotBytesMax else {
            giveUp(load, isTooLarge: true, at: now, into: &effects)
            return
        }
        loads[nextRequest] = load
        nextRequest += 1
    }

    /// Begins the loads whose turn it is. It runs after every input, whatever made room for them.
    mutating func beginLoads(at now: Duration, into effects: inout [ReplicaEffect]) {
        while phase == .joined, loads.activeCount < settings.loadsMax, let request = loads.waiting {
            ask(forNextOf: request, at: now, into: &effects)
        }
    }

    private mutating func ask(
        forNextOf request: UInt64, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard let load = loads[request] else { return }
        loads[request]?.deadline = now + max(settings.fetchPatience, slowPatience)
        guard phase == .joined else { return }
        effects.append(
            .send(
                .load(
                    Load(
                        request: request, place: load.place, offset: UInt64(load.bytes.count),
                        limitBytes: settings.loadBytes, acknowledged: acknowledged))))
    }

    /// Asks again for parts that are overdue: the request or the answer may have been lost.
    mutating func repeatLoads(at now: Duration, into effects: inout [ReplicaEffect]) {
        for request in loads.overdue(at: now) {
            slowDown()
            ask(forNextOf: request, at: now, into: &effects)
        }
    }

    mutating func served(
        _ served: SnapshotServed, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard loads[served.request]?.place == served.chunk.place else { return }
        // A snapshot that is gone, or is not the announced one, will never be complete.
        guard loads[served.request]?.reference.byteCount == served.chunk.byteCount else {
            if let load = loads.remove(served.request) {
                giveUp(load, isTooLarge: false, at: now, into: &effects)
            }
            return
        }
        // A part that was asked for twice arrives twice.
        guard loads.take(served.chunk, for: served.request) else { return }
        loadedAt = now
        guard loads[served.request]?.isWhole == true, let load = loads.remove(served.request)
        else {
            ask(forNextOf: served.request, at: now, into: &effects)
            return
        }
        if load.isIntact {
            finish(load, at: now, into: &effects)
        } else {
            giveUp(load, isTooLarge: false, at: now, into: &effects)
        }
    }

    private mutating func finish(
        _ load: SnapshotLoad, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        let store = load.place.store
        switch load.purpose {
        case .opening(let start):
            let state = EncodedState(coding: .json, bytes: load.bytes[...])
            let snapshot = Snapshot(
                sequence: load.reference.sequence, schemaVersion: load.reference.schemaVersion,
                state: state)
            begin(store, life: load.place.life, with: snapshot, start, at: now, into: &effects)
        case .following(let snapshot, let start):
            restore(
                store, life: load.place.life, snapshot, load.bytes[...], start, into: &effects)
        case .comparing(let divergence):
            compare(divergence, with: load.bytes[...], at: now, into: &effects)
        case .migrating(let version):
            let snapshot = Snapshot(
                sequence: load.reference.sequence, schemaVersion: load.reference.schemaVersion,
                state: EncodedState(coding: .json, bytes: load.bytes[...]))
            effects.append(.deliver(.migrate(store, life: load.place.life, snapshot, to: version)))
        case .reading(let request):
            effects.append(.loaded(request: request, load.bytes[...]))
        }
    }

    /// Gives up a load: the sequencer no longer has the snapshot, or it is not what was announced,
    /// or it is too large.
    private mutating func giveUp(
        _ load: SnapshotLoad, isTooLarge: Bool, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        let subject = HostingSubject.store(load.place.store)
        switch load.purpose {
        case .comparing(let divergence): compare(divergence, with: nil, at: now, into: &effects)
        case .migrating(let version):
            let migrated = Migrated(
                place: load.place, schemaVersion: version,
                outcome: .failed(
                    isTooLarge ? Self.tooLarge(load, settings) : "the snapshot is damaged, or gone")
            )
            if phase == .joined { effects.append(.send(.migrated(migrated))) }
        case .reading(let request): effects.append(.loaded(request: request, nil))
        case .opening, .following:
            if isTooLarge {
                fail(
                    load.place, .payloadTooLarge, Self.tooLarge(load, settings), at: now,
                    into: &effects)
            } else if hosting[subject]?.noteUnreadable(load.place) == true {
                let text =
                    "its snapshot at \(load.place.sequence) is damaged, or gone: the sequencer prints why. If no other "
                    + "node hosts the store, restore the log from a backup, or drop the store"
                fail(load.place, .damaged, text, at: now, into: &effects)
            } else {
                // There may be a newer snapshot by now. The store is asked for as if the answer to its open had been lost.
                if !isAnswerDue { owedSince = now }
                hosting[subject]?.phase = .asked
            }
        }
    }

    /// A store can't be opened with what the sequencer has.
    private mutating func fail(
        _ place: SnapshotPlace, _ code: RejectionCode, _ message: String, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        let subject = HostingSubject.store(place.store)
        guard let request = hosting.remove(subject)?.open.request else { return }
        effects.append(.send(.close(Close(subject: subject))))
        effects.append(.deliver(.opened(request: request, .failed(code, message: message))))
        let stop = StoppedStore(store: place.store, life: place.life, sequence: place.life)
        stopped(stop, at: now, into: &effects)
    }

    private static func tooLarge(_ load: SnapshotLoad, _ settings: ReplicaSettings) -> String {
        "its snapshot has \(load.reference.byteCount) bytes and this node takes "
            + "\(settings.snapshotBytesMax); raise the node's limit"
    }

    // MARK: Divergence

    mutating func diverged(
        _ divergence: Divergence, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard case .opened(divergence.life, _) = hosting[.store(divergence.store)]?.phase else {
            return
        }
        // Comparisons for an older point, or from an earlier message, are of no use any more.
        loads.removeComparing(divergence.store)
        load(
            divergence.place, divergence.reference, for: .comparing(divergence), at: now,
            into: &effects)
    }

    private mutating func compare(
        _ divergence: Divergence, with bytes: Bytes?, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        effects.append(.deliver(.compare(divergence, bytes)))
        if divergence.mustReload { reopen(divergence.store, at: now, into: &effects) }
    }

    // MARK: Stopped replicas

    mutating func stopped(
        _ store: StoppedStore, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        if let hosting = hosting[.store(store.store)], hosting.phase.life != store.life { return }
        stopped[store.store] = store
        sayStopped(at: now, into: &effects)
    }

    /// The replicas that are stopped have changed.
    mutating func sayStopped(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard phase == .joined else { return }
        sendProgress(at: now, settled: submissions.reported, into: &effects)
    }
}
