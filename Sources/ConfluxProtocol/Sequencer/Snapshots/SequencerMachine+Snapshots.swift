import ConfluxVocabulary

/// Snapshots: how replicas upload them (see ``SnapshotUpload``).
extension SequencerMachine {
    /// Uses a snapshot that the log has, if its store exists.
    mutating func adopt(_ snapshot: SnapshotIndexEntry) {
        guard snapshot.place.sequence <= term.last else { return }
        if snapshot.isAside {
            directory.keep(
                StoreRecord.Aside(
                    through: snapshot.place.sequence, reference: snapshot.reference),
                of: snapshot.place.store, life: snapshot.place.life)
            return
        }
        guard directory.take(snapshot.reference, of: snapshot.place),
            let store = directory.store(snapshot.place.store),
            store.lastPoint == snapshot.place.sequence
        else { return }
        directory.change(snapshot.place) { $0.tookSnapshot(load: store.pointLoad) }
    }

    /// Begins to upload the state that some replicas have at a digest point.
    mutating func upload(
        _ result: Votes.Result, of round: Votes.Round, isConfirmed: Bool,
        at now: Moment, into effects: inout [SequencerEffect]
    ) {
        let reference = SnapshotReference(
            sequence: round.place.sequence, schemaVersion: round.schemaVersion,
            digest: result.digest, byteCount: result.byteCount)
        let name = round.place.store
        guard let life = directory.life(round.place), !life.isBaseFixed else { return }
        if case .saved(let base) = life.record.base, base.sequence >= reference.sequence {
            // A replica voted late. The snapshot that was confirmed at this point stays, whatever
            // the votes now amount to: openers begin with it, and the log may discard the entries
            // before it. If the votes now favour another state, the next point will show it.
            guard base.sequence == reference.sequence else { return }
            if !isConfirmed || base == reference {
                tellDivergence(of: round.place, base, into: &effects)
            } else {
                directory.change(name) { $0.point.want() }
            }
            return
        }
        guard
            let upload = SnapshotUpload(
                reference, of: round, from: sources(of: result, in: round),
                isConfirmed: isConfirmed)
        else {
            snapshotFailed(round.place, Self.noSource, into: &effects)
            return
        }
        guard life.work.upload?.isSame(as: upload) != true else { return }
        directory.change(name) { $0.giveUpUpload() }
        // The log may complete the snapshot with the part that it is saving. After that the store
        // is examined again: see `isPointReady`.
        guard life.work.save == nil else {
            directory.change(name) { isConfirmed ? $0.point.want() : $0.point.fallDue() }
            return
        }
        guard result.byteCount <= settings.snapshotBytesMax else {
            let text =
                "the state has \(result.byteCount) bytes and the limit is "
                + "\(settings.snapshotBytesMax); raise it, or make the state smaller"
            snapshotFailed(round.place, text, into: &effects)
            return
        }
        directory.change(name) { $0.begin(upload) }
        beginUploads(at: now, into: &effects)
    }

    private static let noSource = "no connected replica sends this state"

    /// The replicas that voted for a state and are remembered. Those that never failed to send one are asked first, and
    /// then those whose last failure is longest ago.
    private func sources(
        of result: Votes.Result, in round: Votes.Round
    ) -> [SnapshotUpload.Source] {
        let sources = round.sources(of: result.digest).compactMap { incarnation in
            sessions[incarnation].map {
                SnapshotUpload.Source(incarnation: incarnation, sharer: $0.sharer)
            }
        }
        return sourceFailures.ordered(sources)
    }

    private mutating func beginUploads(
        at now: Moment, into effects: inout [SequencerEffect]
    ) {
        while let name = directory.lives.nextWaiting(of: settings.uploadsMax),
            let place = directory.life(of: name)?.work.upload?.place
        {
            goOn(with: place, at: now, into: &effects)
        }
    }

    /// Asks the first source that is present for the next part. Without one, the upload is given up.
    private mutating func goOn(
        with place: SnapshotPlace, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        let deadline = now.monotonic + settings.snapshotPatience
        while let work = directory.life(place)?.work, let upload = work.upload {
            // Only live nodes are hosts.
            if work.hosts[upload.source.incarnation] != nil,
                let connection = sessions[upload.source.incarnation]?.connection
            {
                directory.change(place) { $0.ask(until: deadline) }
                effects.append(
                    .send(
                        .snapshotRequest(
                            SnapshotRequest(
                                place: upload.place, offset: upload.offset,
                                limitBytes: settings.snapshotPartBytesMax)), to: connection))
                return
            }
            directory.change(place) { $0.passOverSource() }
        }
        fail(place, Self.noSource, into: &effects)
    }

    /// Gives an upload up. The next attempt is at the store's next point, and no sooner: an upload
    /// that always fails would otherwise fail with every commit. From here on there is room for
    /// another upload.
    private mutating func fail(
        _ place: SnapshotPlace, _ reason: String, into effects: inout [SequencerEffect]
    ) {
        directory.change(place) { $0.giveUpUpload() }
        snapshotFailed(place, reason, into: &effects)
    }

    /// No snapshot of a store can be taken now. The store is frozen when too many entries depend on
    /// that.
    mutating func snapshotFailed(
        _ place: SnapshotPlace, _ reason: String, into effects: inout [SequencerEffect]
    ) {
        directory.change(place) { $0.failSnapshot(reason, at: place.sequence) }
        effects.append(.note(.snapshotFailed(place, reason)))
        freezeUnsaved(place.store)
    }

    /// A part of a snapshot has arrived.
    mutating func take(
        _ chunk: SnapshotChunk, of incarnation: Incarnation, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        let place = chunk.place
        guard let upload = directory.life(place)?.work.upload, upload.place == place,
            upload.deadline != nil, upload.source.incarnation == incarnation
        else { return }
        let partBytesMax = Int(settings.snapshotPartBytesMax)
        switch directory.change(place, { $0.take(chunk, partBytesMax: partBytesMax) }) ?? nil {
        case .part(let part): effects.append(.saveSnapshot(part))
        case .gone: passOver(place, "it no longer has that state", at: now, into: &effects)
        case .short:
            passOver(
                place, "it does not send the part that it was asked for", at: now, into: &effects)
        case .wrong(isOneGiver: true):
            passOver(
                place, "what it sent does not have the digest that it voted for", at: now,
                into: &effects)
        case .wrong(isOneGiver: false): goOn(with: place, at: now, into: &effects)
        case .other, nil: break
        }
    }

    /// The source of an upload has failed, so the next one is asked. From here on it is asked after
    /// others for all snapshots.
    private mutating func passOver(
        _ place: SnapshotPlace, _ reason: String, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        guard let source = directory.life(place)?.work.upload?.source else { return }
        sourceFailures.add(source)
        let session = sessions[source.incarnation]
        effects.append(
            .note(
                .sourcePassedOver(
                    place, source.incarnation, name: session?.name, owner: session?.owner,
                    reason)))
        directory.change(place) { $0.passOverSource() }
        goOn(with: place, at: now, into: &effects)
        beginUploads(at: now, into: &effects)
    }

    /// The log has saved a part, or could not save it.
    mutating func saved(
        _ answer: SnapshotSaved, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        let place = answer.place
        guard phase == .serving, let save = directory.change(place, { $0.endSave() }) ?? nil
        else { return }
        defer { beginUploads(at: now, into: &effects) }
        // The log keeps only the newest two, so a snapshot that is complete there counts, whoever
        // wanted it.
        if let whole = answer.whole, save.isConfirmed {
            took(whole, of: place, load: save.load, into: &effects)
            tookSnapshot(ofRising: place.store, at: now, into: &effects)
            reviewDepartures(into: &effects)
        }
        guard directory.life(place)?.work.upload?.place == place else { return }
        if let failure = answer.failure {
            fail(place, "it can't be saved: \(failure)", into: &effects)
        } else if let whole = answer.whole {
            directory.change(place) { $0.giveUpUpload() }
            tellDivergence(of: place, whole, into: &effects)
        } else {
            goOn(with: place, at: now, into: &effects)
        }
    }

    /// A confirmed snapshot is complete in the log.
    private mutating func took(
        _ reference: SnapshotReference, of place: SnapshotPlace, load: UInt64,
        into effects: inout [SequencerEffect]
    ) {
        guard let life = directory.life(place), !life.isBaseFixed,
            directory.take(reference, of: place)
        else { return }
        directory.change(place) { $0.tookSnapshot(load: load) }
        release(place)
        effects.append(.note(.snapshotTaken(place, byteCount: reference.byteCount)))
        if life.work.point.isWanted { tellReload(of: place, into: &effects) }
    }

    /// Tells the replicas that stopped at an entry which this snapshot includes to reload (rule
    /// 23).
    func tellReload(
        of place: SnapshotPlace, into effects: inout [SequencerEffect]
    ) {
        guard let work = directory.life(place)?.work else { return }
        for (incarnation, sequence) in work.stops.sorted(by: { $0.key < $1.key }) {
            guard work.hosts[incarnation] != nil, sequence <= place.sequence,
                let connection = sessions[incarnation]?.connection
            else { continue }
            effects.append(.send(.reload(Reload(place: place)), to: connection))
        }
    }

    /// Goes on with the next source where a source did not answer in time.
    mutating func passUploads(at now: Moment, into effects: inout [SequencerEffect]) {
        for name in directory.lives.overdue(at: now.monotonic) {
            guard let place = directory.life(of: name)?.work.upload?.place else { continue }
            passOver(place, "it did not answer in time", at: now, into: &effects)
        }
        beginUploads(at: now, into: &effects)
    }
}

extension SnapshotIndexEntry {
    /// Snapshots come before the entries that are kept aside after them.
    var order: (Int, SequenceNumber) { (isAside ? 1 : 0, place.sequence) }
}
