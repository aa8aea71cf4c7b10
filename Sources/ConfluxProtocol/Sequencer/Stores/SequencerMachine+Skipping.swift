import ConfluxVocabulary

/// Skipping entries (rule 38).
extension SequencerMachine {
    mutating func skip(
        _ skip: Skip, from connection: ConnectionID, as principal: Principal,
        into effects: inout [SequencerEffect]
    ) {
        let asker = Asker(connection: connection, request: skip.request)
        let entry = SkippedEntry(sequence: skip.sequence, target: skip.target)
        guard !directory.skips.entries.contains(entry) else {
            confirm(term.last, to: asker, into: &effects)
            return
        }
        if let reason = reasonNotToSkip(entry) {
            // The snapshot exists already, so stopped replicas are told at once.
            for name in directory.names(concernedBy: skip.target) {
                guard let store = directory.store(name), store.baseSequence >= skip.sequence
                else { continue }
                let place = SnapshotPlace(
                    store: name, life: store.life, sequence: store.baseSequence)
                tellReload(of: place, into: &effects)
            }
            refuse(.passed, reason, to: asker, into: &effects)
            return
        }
        guard directory.skips.isPending(entry) || directory.skips.hasRoom(for: principal.name)
        else {
            let text =
                "as many entries as one client may skip are skipped; they are forgotten when the "
                + "log discards them"
            refuse(.tableFull, text, to: asker, into: &effects)
            return
        }
        guard pipeline.hasRoom(bytes: 0), directory.skip(entry, for: asker, as: principal)
        else { return }
        pipeline.admit(
            .skipped(entry.sequence, entry.target), by: principal.name, then: .skipped(entry))
        // The votes for this and later points were for states that include the entry.
        for name in directory.names(concernedBy: entry.target) {
            if let round = directory.life(of: name)?.work.votes.round,
                round.place.sequence >= entry.sequence
            {
                directory.change(name) { $0.forgetVotes() }
            }
        }
    }

    /// Why an entry can't be skipped. For example, a live replica has applied it, or may have.
    private mutating func reasonNotToSkip(_ skip: SkippedEntry) -> String? {
        let isThere =
            skip.sequence >= term.floor || directory.isKeptAside(skip.sequence, skip.target)
        guard isThere, skip.sequence <= term.last else {
            return "the log holds entries \(term.floor) to \(term.last)"
        }
        let names = directory.names(concernedBy: skip.target)
        for name in names {
            guard let store = directory.store(name), store.baseSequence >= skip.sequence
            else { continue }
            return
                "the snapshot of \(name) at \(store.baseSequence) has entry \(skip.sequence) "
                + "in it: replicas that stopped begin there when they are opened again"
        }
        for name in names {
            // A replica that has left may have applied the entry, and its state may be on its way.
            guard let work = directory.life(of: name)?.work else { continue }
            let isComing = work.upload.map { $0.place.sequence >= skip.sequence } ?? false
            if isComing || work.save != nil {
                return "a snapshot of \(name) is being saved; ask again"
            }
        }
        for name in names {
            guard let life = directory.life(of: name) else { continue }
            for incarnation in life.work.hosts.keys.sorted() {
                if let stopped = life.work.stops[incarnation], stopped <= skip.sequence { continue }
                guard let session = sessions[incarnation] else { continue }
                let node = session.name?.text ?? "\(incarnation)"
                guard session.applied >= skip.sequence else {
                    return "node \(node) hosts \(name) and has not come to entry "
                        + "\(skip.sequence) yet; ask again"
                }
                // The stopped replicas will get this node's state. Most of them are not present
                // now, since a process that died of the entry could not even open the store. One
                // snapshot is enough, because it includes the entry.
                directory.change(name) { $0.point.want() }
                return "node \(node) has applied entry \(skip.sequence) to \(name): replicas that "
                    + "stopped there get its state instead"
                    // No snapshot is taken of a frozen store.
                    + (life.isFrozenAtAdmission ? ", once the store is thawed" : "")
            }
        }
        return nil
    }

    /// The entry that makes another entry have no effect is in the log.
    mutating func skipped(
        _ skip: SkippedEntry, at sequence: SequenceNumber, into effects: inout [SequencerEffect]
    ) {
        let askers = directory.skipped(skip, at: sequence)
        effects.append(.note(.skipped(skip.sequence, skip.target)))
        for asker in askers { confirm(sequence, to: asker, into: &effects) }
    }
}
