import ConfluxVocabulary

/// Entries about a life itself, or *words*: the life has a newer schema version, is frozen or
/// thawed (rule 21), or is over (rule 16).
///
///     say ──▶ on its way ──▶ in the log: it counts, and those who wait for it are told
///
/// A life has one word at a time. Whoever asks for another word meanwhile gets no answer, and asks
/// again. The sequencer itself tries again, too.
extension SequencerMachine {
    /// Admits a word on a present life.
    ///
    /// - Parameters:
    ///   - kind: The word.
    ///   - name: The store.
    ///   - owner: The name of the key that asked for it; nil if none did.
    /// - Returns: Whether it was admitted. It is not if another word is on its way.
    @discardableResult
    mutating func say(
        _ kind: StoreWord.Kind, of name: StoreName, by owner: Name? = nil
    ) -> Bool {
        guard let life = directory.life(of: name), life.work.word == nil else { return false }
        directory.change(name) { $0.begin(StoreWord(kind)) }
        let number = life.record.life
        if kind == .dropped { endTimers(of: name, life: number) }
        pipeline.admit(
            kind.event(of: name, life: number), by: owner, then: .word(name, life: number))
        return true
    }

    /// A word is in the log.
    mutating func landed(
        _ name: StoreName, life: SequenceNumber, at sequence: SequenceNumber,
        into effects: inout [SequencerEffect]
    ) {
        // Only a word ends a life, and there is one at a time.
        guard let word = directory.land(name, life: life, at: sequence) else {
            preconditionFailure("no word on \(name) was on its way")
        }
        switch word.kind {
        case .upgraded(let version, _, _):
            effects.append(.note(.upgraded(name, schemaVersion: version)))
            // Its hosts may understand an even newer one.
            directory.hostsChange(of: name)
            for opener in word.openers.all { host(name, for: opener, into: &effects) }
        case .frozen(let reason): effects.append(.note(.frozen(name, reason)))
        case .thawed:
            effects.append(.note(.thawed(name)))
            directory.change(name) { $0.point.resume() }
            directory.hostsChange(of: name)
        case .dropped:
            effects.append(.removeSnapshots(name))
            effects.append(.note(.dropped(name, life: life)))
        }
        for asker in word.askers.all { confirm(sequence, to: asker, into: &effects) }
        // A node may have opened the store meanwhile.
        if directory.life(of: name)?.hasVoter == true { thawHosted(name) }
    }

    // MARK: Freezing

    mutating func freeze(
        _ freeze: Freeze, from connection: ConnectionID, as principal: Principal,
        into effects: inout [SequencerEffect]
    ) {
        let asker = Asker(connection: connection, request: freeze.request)
        let sharer = principal.sharer(on: connection)
        guard directory.admittedLife(of: freeze.store)?.life == freeze.life,
            let life = directory.life(of: freeze.store), life.record.life == freeze.life
        else {
            let text = "there is no such store, or it has another life by now"
            refuse(.otherLife, text, to: asker, into: &effects)
            return
        }
        let word = StoreWord.Kind.asked(freeze)
        if life.work.word?.kind == word {
            directory.change(freeze.store) { $0.wait(asker, of: sharer) }
        } else if life.work.word == nil {
            if life.record.isFrozen == freeze.isFrozen {
                confirm(term.last, to: asker, into: &effects)
            } else if pipeline.hasRoom(bytes: 0) {
                say(word, of: freeze.store, by: principal.name)
                directory.change(freeze.store) { $0.wait(asker, of: sharer) }
            }
        }
        // Otherwise another word is on its way to the log, or there is no room. The node asks
        // again.
    }

    /// A store that was frozen because nobody hosted it is hosted again (rule 21).
    mutating func thawHosted(_ name: StoreName) {
        guard directory.store(name)?.freezing?.reason == .abandoned else { return }
        say(.thawed, of: name)
    }

    /// Counts how much of the log concerns a store since a snapshot that was taken before this term:
    /// at the latest from here on.
    mutating func countUnconfirmed(_ round: Votes.Round) {
        guard case .saved? = directory.life(of: round.place.store)?.record.base else { return }
        directory.change(round.place) { $0.point.count(from: round.load) }
    }

    /// Freezes a store of which no snapshot can be taken, once too many entries have concerned it
    /// since its last snapshot (rules 19 and 21).
    mutating func freezeUnsaved(_ name: StoreName) {
        guard let life = directory.life(of: name), !life.isFrozenAtAdmission,
            unsavedBytes(of: name) >= settings.unconfirmedBytesMax
        else { return }
        say(.frozen(life.hasVoter ? .unconfirmed : .abandoned), of: name)
    }

    /// The bytes of the entries since the store's snapshot.
    func unsavedBytes(of name: StoreName) -> UInt64 {
        directory.life(of: name)?.unsavedBytes(of: directory.load(of: name)) ?? 0
    }

    // MARK: Dropping

    /// Ends a life by an entry. A life that is over already is confirmed at once.
    mutating func drop(
        _ drop: Drop, from connection: ConnectionID, as principal: Principal,
        into effects: inout [SequencerEffect]
    ) {
        let asker = Asker(connection: connection, request: drop.request)
        let sharer = principal.sharer(on: connection)
        // A life that is not in the log yet is dropped when the node asks again.
        guard directory.beginnings[drop.store]?.life != drop.life else { return }
        guard let life = directory.life(of: drop.store), life.record.life == drop.life else {
            confirm(term.last, to: asker, into: &effects)
            return
        }
        if !life.isEnding {
            guard pipeline.hasRoom(bytes: 0), say(.dropped, of: drop.store, by: principal.name)
            else {
                return
            }
        }
        directory.change(drop.store) { $0.wait(asker, of: sharer) }
    }

    func refuse(
        _ code: RejectionCode, _ text: String, to asker: Asker,
        into effects: inout [SequencerEffect]
    ) {
        let confirmed = Confirmed(request: asker.request, outcome: .failed(code, message: text))
        effects.append(.send(.confirmed(confirmed), to: asker.connection))
    }
}

extension StoreWord.Kind {
    /// The word that a node asked for.
    fileprivate static func asked(_ freeze: Freeze) -> Self {
        freeze.isFrozen ? .frozen(.asked) : .thawed
    }
}
