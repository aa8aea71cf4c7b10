import ConfluxVocabulary

/// Snapshots: how they come from replicas (see ``UploadTable``), and how they go to who opens a
/// store. The second half of rule 19.
extension SequencerMachine {
    /// A snapshot that the log has counts, if the store that it is of is there.
    mutating func adopt(_ snapshot: SnapshotIndexEntry) {
        guard snapshot.place.sequence <= tenure.last else { return }
        if snapshot.isAside {
            directory.keep(
                StoreRecord.Aside(
                    through: snapshot.place.sequence, reference: snapshot.reference),
                of: snapshot.place.store, life: snapshot.place.life)
            return
        }
        guard directory.take(snapshot.reference, of: snapshot.place) else { return }
        if directory.store(snapshot.place.store)?.lastPoint == snapshot.place.sequence {
            points.snapshotLoads[snapshot.place.store] =
                directory.store(snapshot.place.store)?.pointLoad
        }
    }

    /// Wants the state that some replicas have at a digest point.
    mutating func upload(
        _ result: DigestTable.Result, of round: DigestTable.Round, isConfirmed: Bool,
        at now: Moment, into effects: inout [SequencerEffect]
    ) {
        let reference = SnapshotReference(
            sequence: round.place.sequence, schemaVersion: round.schemaVersion,
            digest: result.digest, byteCount: result.byteCount)
        let name = round.place.store
        if case .saved(let base)? = directory.store(name)?.base,
            base.sequence >= reference.sequence
        {
            // A replica voted late. What was confirmed at this point stays, whatever the votes come to
            // by now: openers begin with it, and the log may be given up behind it. Where they made
            // another state the store's, the next point tells.
            guard base.sequence == reference.sequence else { return }
            if !isConfirmed || base == reference {
                tellDivergence(of: round.place, base, into: &effects)
            } else {
                points.due.insert(name)
                points.wanted.insert(name)
            }
            return
        }
        // What was wanted of this point before a replica voted late.
        if let former = uploads[name], former.place == round.place,
            former.reference != reference || former.isConfirmed != isConfirmed
        {
            uploads.remove(name)
        }
        // The log may have it whole at once, and a point has one snapshot: the next one tells.
        guard !uploads.isSavingGivenUp(round.place) else {
            points.due.insert(name)
            if isConfirmed { points.wanted.insert(name) }
            return
        }
        guard result.byteCount <= settings.snapshotBytesMax else {
            let text =
                "the state has \(result.byteCount) bytes and the limit is "
                + "\(settings.snapshotBytesMax); raise it, or the log is kept for this store"
            effects.append(.note(.snapshotFailed(round.place, text)))
            return
        }
        uploads.add(UploadTable.Upload(reference, of: round, isConfirmed: isConfirmed))
        beginUploads(at: now, into: &effects)
    }

    private mutating func beginUploads(
        at now: Moment, into effects: inout [SequencerEffect]
    ) {
        while let upload = uploads.next(most: settings.uploadsMax) {
            ask(for: upload, at: now, into: &effects)
        }
    }

    /// Asks the first source that is there for the next part.
    private mutating func ask(
        for upload: UploadTable.Upload, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        var upload = upload
        let name = upload.place.store
        while let source = upload.sources.first {
            if let session = sessions[source], session.presence == .live,
                let connection = session.connection,
                session.hosted[name]?.life == upload.place.life
            {
                upload.step = .asked(until: now.monotonic + settings.snapshotPatience)
                uploads[name] = upload
                effects.append(
                    .send(
                        .snapshotRequest(
                            SnapshotRequest(
                                place: upload.place, offset: upload.offset,
                                limitBytes: settings.snapshotPartBytesMax)), to: connection))
                return
            }
            upload.sources.removeFirst()
        }
        fail(upload, "no replica that has this state is there any more", into: &effects)
    }

    /// Gives one up. It is due again at the store's next point, and no sooner: what fails for good
    /// would fail as often as there is a commit. There is room for another one from here on.
    private mutating func fail(
        _ upload: UploadTable.Upload, _ reason: String, into effects: inout [SequencerEffect]
    ) {
        uploads.remove(upload.place.store)
        effects.append(.note(.snapshotFailed(upload.place, reason)))
    }

    /// A part of a snapshot has come.
    mutating func take(
        _ chunk: SnapshotChunk, of incarnation: Incarnation, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        guard var upload = uploads[chunk.place.store], upload.place == chunk.place,
            case .asked = upload.step, upload.sources.first == incarnation
        else { return }
        guard chunk.byteCount == upload.reference.byteCount, !chunk.bytes.isEmpty,
            chunk.bytes.count <= Int(settings.snapshotPartBytesMax)
        else {
            // It has the state no longer, or never had.
            upload.sources.removeFirst()
            ask(for: upload, at: now, into: &effects)
            beginUploads(at: now, into: &effects)
            return
        }
        // What was asked for twice comes twice.
        guard chunk.offset == upload.offset else { return }
        upload.hasher.update(chunk.bytes)
        let isLast = upload.offset + UInt64(chunk.bytes.count) == upload.reference.byteCount
        guard !isLast || upload.hasher.finish() == upload.reference.digest else {
            fail(
                upload, "what replicas sent does not have the digest that they voted for",
                into: &effects)
            beginUploads(at: now, into: &effects)
            return
        }
        upload.step = .saving(UInt64(chunk.bytes.count))
        uploads[chunk.place.store] = upload
        effects.append(
            .saveSnapshot(
                SnapshotPart(
                    place: upload.place, reference: upload.reference,
                    isConfirmed: upload.isConfirmed, offset: upload.offset, bytes: chunk.bytes)))
    }

    /// The log has a part, or it has not.
    mutating func saved(
        _ place: SnapshotPlace, _ offset: UInt64, _ failure: String?, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        guard phase == .serving,
            let (answered, bytes, isGivenUp) = uploads.answered(place, offset)
        else { return }
        var upload = answered
        defer { beginUploads(at: now, into: &effects) }
        let isWhole = upload.offset + bytes == upload.reference.byteCount
        if isGivenUp {
            // The log keeps no more than the newest two: what is whole there counts here, too. And a
            // point has one snapshot: what is wanted of it since a late vote would take this one's
            // place in the log.
            if failure == nil, upload.isConfirmed, isWhole {
                if uploads[place.store]?.place == place { uploads.remove(place.store) }
                finish(upload, into: &effects)
            }
            return
        }
        if let failure {
            fail(upload, "it can't be saved: \(failure)", into: &effects)
            return
        }
        guard isWhole else {
            upload.offset += bytes
            ask(for: upload, at: now, into: &effects)
            return
        }
        uploads.remove(place.store)
        finish(upload, into: &effects)
    }

    private mutating func finish(
        _ upload: UploadTable.Upload, into effects: inout [SequencerEffect]
    ) {
        let name = upload.place.store
        let isAwaited = points.wanted.contains(name)
        if upload.isConfirmed, upgrading[name] == nil,
            directory.take(upload.reference, of: upload.place)
        {
            points.snapshotLoads[name] = upload.load
            points.wanted.remove(name)
            effects.append(
                .note(.snapshotTaken(upload.place, byteCount: upload.reference.byteCount)))
            if isAwaited { tellReload(of: upload.place, into: &effects) }
        }
        tellDivergence(of: upload.place, upload.reference, into: &effects)
    }

    /// Replicas that stopped at an entry which others have passed begin anew behind it (rule 23).
    func tellReload(
        of place: SnapshotPlace, into effects: inout [SequencerEffect]
    ) {
        for session in sessions.all.sorted(by: { $0.incarnation < $1.incarnation }) {
            guard let sequence = session.stopped[place.store], sequence <= place.sequence,
                let connection = session.connection
            else { continue }
            effects.append(.send(.reload(Reload(place: place)), to: connection))
        }
    }

    /// Looks at uploads whose source did not answer.
    mutating func passUploads(at now: Moment, into effects: inout [SequencerEffect]) {
        for name in uploads.overdue(at: now.monotonic) {
            guard var upload = uploads[name] else { continue }
            upload.sources.removeFirst()
            ask(for: upload, at: now, into: &effects)
        }
        beginUploads(at: now, into: &effects)
    }

    // MARK: To who opens a store

    /// Sends a node a part of a snapshot.
    mutating func load(
        _ load: Load, from connection: ConnectionID, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        unreadAnswers.goOn(behind: .part(load.place, load.offset), on: connection)
        let own = fetchesUnderWay[connection, default: 0]
        // A node asks again when it gets no answer: dropping is the bound's stated behaviour.
        guard fetchCount < settings.fetchesMax, own < Self.fetchesPerNodeMax,
            unreadAnswers.hasRoom(for: connection)
        else { return }
        fetchesUnderWay[connection] = own + 1
        fetchCount += 1
        effects.append(
            .readSnapshot(
                LoadJob(
                    connection: connection, request: load.request, place: load.place,
                    offset: load.offset,
                    limitBytes: min(load.limitBytes, settings.snapshotPartBytesMax))))
    }

    mutating func answerLoad(
        _ job: LoadJob, with chunk: SnapshotChunk, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        endFetch(of: job.connection)
        if chunk.isNone, let store = directory.store(job.place.store),
            store.life == job.place.life, case .saved(let base) = store.base,
            base.sequence == job.place.sequence
        {
            // What openers should begin with can't be read: replicas make another one.
            points.due.insert(job.place.store)
            points.wanted.insert(job.place.store)
            effects.append(.note(.snapshotFailed(job.place, "it can't be read")))
        }
        unreadAnswers.sent(
            .part(job.place, job.offset + UInt64(chunk.bytes.count)),
            byteCount: chunk.bytes.count, to: job.connection, at: now)
        let served = SnapshotServed(request: job.request, chunk: chunk)
        effects.append(.send(.snapshotServed(served), to: job.connection))
    }
}

extension SnapshotIndexEntry {
    /// Snapshots come before what is kept behind them.
    var order: (Int, SequenceNumber) { (isAside ? 1 : 0, place.sequence) }
}
