import ConfluxVocabulary

/// The steps of a rise, from the rehearsal to the word (see ``Rise``).
extension SequencerMachine {
    /// Asks the next nodes, or takes the next step once all have answered.
    mutating func goOn(
        rising name: StoreName, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard let life = directory.life(of: name), let rise = life.work.rise else { return }
        switch rise.step {
        case .nearing(let last):
            if life.hasVoter, life.record.baseSequence < last, now.monotonic < rise.deadline {
                wantSnapshot(of: name, life.work)
                return
            }
            step(.rehearsing, of: name, at: now)
            goOn(rising: name, at: now, into: &effects)
        case .rehearsing, .migrating:
            let deadline = now.monotonic + migrationPatience(of: life)
            directory.change(name) {
                $0.rise?.rehearse(from: life.record.baseSequence, until: deadline)
            }
            for node in directory.change(name, { $0.rise?.ask() ?? [] }) ?? [] {
                sendMigrate(life, named: name, to: node, into: &effects)
            }
            guard directory.life(of: name)?.work.rise?.isAnswered == true else { return }
            if rise.step == .migrating {
                step(.ready, of: name, at: now)
            } else {
                step(.fencing(through: pipeline.lastAdmitted), of: name, at: now)
            }
            goOn(rising: name, at: now, into: &effects)
        case .fencing(let last):
            guard pipeline.isEmpty || term.last >= last && pipeline.inFlight == nil else {
                return
            }
            let isWhole = directory.stamp(of: name) <= life.record.baseSequence
            if isWhole || rise.wish.mayReplay && !life.hasVoter {
                // The rehearsal is enough for the nodes that have migrated this snapshot.
                beginMigrating(name, at: now, into: &effects)
            } else if life.hasVoter {
                step(.saving, of: name, at: now)
                goOn(rising: name, at: now, into: &effects)
            } else {
                endRise(
                    of: name, failing: unreplayed(name, life), at: now.monotonic, into: &effects)
            }
        case .saving:
            guard directory.stamp(of: name) <= life.record.baseSequence else {
                wantSnapshot(of: name, life.work)
                return
            }
            beginMigrating(name, at: now, into: &effects)
        case .ready:
            if let text = objection(to: rise, of: name) {
                endRise(of: name, failing: text, isOver: false, at: now.monotonic, into: &effects)
            } else {
                sayUpgraded(name, rise, into: &effects)
            }
        }
    }

    /// Migrates the store's base, which stays what it is from here on: no upload begins or goes on, and no part is being
    /// saved that might complete another snapshot.
    private mutating func beginMigrating(
        _ name: StoreName, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        directory.change(name) { $0.giveUpUpload() }
        guard directory.life(of: name)?.work.save == nil else { return }
        step(.migrating, of: name, at: now)
        goOn(rising: name, at: now, into: &effects)
    }

    /// Asks for a snapshot: it is the first attempt to save one, or the one before has failed.
    private mutating func wantSnapshot(of name: StoreName, _ work: StoreWork) {
        guard work.upload == nil, !work.votes.isOpen, !work.point.isAdmitted else { return }
        directory.change(name) { $0.point.want() }
    }

    func migrationPatience(of life: StoreLife) -> Duration {
        let bytes: UInt64 =
            switch life.record.base {
            case .initial(let state, _): UInt64(state.bytes.count)
            case .saved(let reference): reference.byteCount
            }
        return settings.migrationPatience + .seconds(Int64(bytes >> 24))
    }

    private mutating func step(_ step: Rise.Step, of name: StoreName, at now: Moment) {
        guard let life = directory.life(of: name), let rise = life.work.rise else { return }
        let nodes =
            step == .rehearsing || step == .migrating
            ? Set(life.work.hosts.keys).union(rise.openers.all.map(\.incarnation)) : []
        // The whole time in which entries wait is bounded.
        let deadline =
            rise.step.isHolding ? rise.deadline : now.monotonic + migrationPatience(of: life)
        directory.change(name) {
            $0.rise = Rise(
                rise, step, base: life.record.baseSequence, of: nodes, until: deadline)
        }
    }

    /// Says the word. It waits for another word.
    private mutating func sayUpgraded(
        _ name: StoreName, _ rise: Rise, into effects: inout [SequencerEffect]
    ) {
        guard let life = directory.life(of: name), let digest = rise.digest, life.work.word == nil,
            !life.staysFrozenWhenOpened, pipeline.hasRoom(bytes: 0),
            !directory.skips.isPending(for: name)
        else { return }
        precondition(life.record.baseSequence == rise.base, "the base of \(name) changed")
        let owner = rise.openers.all.first.flatMap { sessions[$0.incarnation]?.owner }
        say(
            .upgraded(schemaVersion: rise.version, base: rise.base, digest), of: name, by: owner)
        directory.change(name) { work in
            work.forgetVotes()
            work.rise = nil
            for opener in rise.openers.all { work.wait(opener) }
            work.wait(rise.wish.askers)
        }
    }

    /// The entries up to here are in the log.
    mutating func passFences(at now: Moment, into effects: inout [SequencerEffect]) {
        for name in directory.lives.rising.sorted() {
            if case .fencing? = directory.life(of: name)?.work.rise?.step {
                goOn(rising: name, at: now, into: &effects)
            }
        }
    }

    /// A snapshot of a store is saved.
    mutating func tookSnapshot(
        ofRising name: StoreName, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        switch directory.life(of: name)?.work.rise?.step {
        case .nearing, .saving: goOn(rising: name, at: now, into: &effects)
        case .rehearsing, .fencing, .migrating, .ready, nil: break
        }
    }

    /// A node says what came of a migration.
    mutating func take(
        _ migrated: Migrated, of incarnation: Incarnation, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        let name = migrated.place.store
        guard let rise = directory.life(migrated.place)?.work.rise,
            rise.version == migrated.schemaVersion,
            rise.base == migrated.place.sequence, rise.asked.contains(incarnation)
        else { return }
        switch migrated.outcome {
        case .migrated(let digest):
            guard directory.change(name, { $0.rise?.take(digest, of: incarnation) }) == true else {
                let text =
                    "\(nodeName(incarnation)) makes another state of it than the other nodes: the programs "
                    + "differ, or their migrate(_:from:) depends on more than its arguments"
                endRise(of: name, failing: text, at: now.monotonic, into: &effects)
                return
            }
            goOn(rising: name, at: now, into: &effects)
        case .failed where directory.life(of: name)?.record.baseSequence != rise.base:
            // A newer snapshot has replaced the one that it was to migrate.
            directory.change(name) { $0.rise?.askAgain(incarnation) }
            goOn(rising: name, at: now, into: &effects)
        case .failed(let reason):
            endRise(
                of: name, failing: "\(nodeName(incarnation)): \(reason)", at: now.monotonic,
                into: &effects)
        }
    }

    /// Ends a rise whose time is up, or of which a node has left.
    mutating func reviewRise(
        of name: StoreName, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard let life = directory.life(of: name), let rise = life.work.rise else { return }
        let openers = rise.openers.all.map(\.incarnation)
        if life.staysFrozenWhenOpened {
            endRise(
                of: name, failing: "it was frozen", isOver: false, at: now.monotonic,
                into: &effects)
        } else if let gone = rise.asked.union(rise.unasked).sorted().first(where: {
            life.work.hosts[$0] == nil && !openers.contains($0)
        }) {
            endRise(
                of: name,
                failing: rise.asked.contains(gone)
                    ? "\(nodeName(gone)) left, or crashed, while it migrated the state"
                    : "\(nodeName(gone)) left",
                isOver: rise.asked.contains(gone), at: now.monotonic, into: &effects)
        } else if let text = objection(to: rise, of: name) {
            endRise(of: name, failing: text, isOver: false, at: now.monotonic, into: &effects)
        } else if case .nearing = rise.step {
            goOn(rising: name, at: now, into: &effects)
        } else if now.monotonic >= rise.deadline {
            let silent = rise.silent.sorted().map { nodeName($0) }.joined(separator: ", ")
            let reason: String =
                switch rise.step {
                case .rehearsing, .migrating: "\(silent) did not migrate the state in time"
                case .nearing, .fencing, .ready: "the log did not take the entry in time"
                case .saving:
                    life.work.snapshotFailure.map { "no snapshot can be taken: \($0)" }
                        ?? "its hosts did not save a snapshot in time"
                }
            // A host that loads the store migrates as well, and may have had no time for this.
            endRise(
                of: name, failing: reason, isRetried: true, at: now.monotonic, into: &effects)
        } else {
            goOn(rising: name, at: now, into: &effects)
        }
    }

    /// Why a version that is prepared must not rise: somebody has come who does not understand it, or does not want it;
    /// nil if nobody has.
    private func objection(to rise: Rise, of name: StoreName) -> String? {
        let target = target(of: name)
        return target > 0 && target < rise.version
            ? "\(lacking(rise.version, of: name)) no newer version than \(target)"
            : obstacle(to: name, isTold: rise.wish.isTold)
    }

    /// A rise ends without a trace in the log. It is not tried again before a node opens the store, or, if entries waited
    /// for it, before some time has passed; or somebody asks for it.
    ///
    /// - Parameters:
    ///   - name: The store.
    ///   - reason: Why the rise has failed.
    ///   - isOver: Whether there is no further attempt. Without a migration that failed, the next one is made when the
    ///     hosts allow it.
    ///   - isRetried: Whether it is tried again after some time, even if no entry waited.
    ///   - now: The time.
    ///   - effects: Gets what follows.
    mutating func endRise(
        of name: StoreName, failing reason: String, isOver: Bool = true,
        isRetried: Bool = false, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        guard let rise = directory.life(of: name)?.work.rise else { return }
        let heldEntries =
            switch rise.step {
            case .nearing, .rehearsing, .fencing: false
            case .saving, .migrating, .ready: true
            }
        let retryAt = heldEntries || isRetried ? now + settings.riseRetryInterval : nil
        let present = directory.life(of: name)?.record.schemaVersion ?? 0
        let text =
            "\(name) keeps schema version \(present) and does not get \(rise.version): \(reason)"
        directory.change(name) { work in
            work.rise = nil
            work.riseFailure =
                isOver
                ? StoreWork.RiseFailure(
                    reason: reason, answer: text, openers: rise.openers,
                    heldEntries: heldEntries, retryAt: retryAt) : nil
        }
        // It is reviewed at once, or when it may be tried again.
        directory.hostsChange(of: name)
        effects.append(
            .note(.upgradeFailed(name, schemaVersion: rise.version, reason)))
        // Those that can host the present version do.
        for opener in rise.openers.all where opener.versions.contains(present) {
            host(name, for: opener, into: &effects)
        }
        let others = rise.openers.all.filter { !$0.versions.contains(present) }
        fail(others, .upgradeFailed, text, into: &effects)
        for asker in rise.wish.askers.all {
            refuse(.upgradeFailed, text, to: asker, into: &effects)
        }
    }

    func fail(
        _ openers: [Opener], _ code: RejectionCode, _ text: String,
        into effects: inout [SequencerEffect]
    ) {
        for opener in openers {
            guard let connection = sessions[opener.incarnation]?.connection else { continue }
            let opened = Opened(request: opener.request, outcome: .failed(code, message: text))
            effects.append(.send(.opened(opened), to: connection))
        }
    }

    /// A node is present again, after its connection was made anew or it was taken for gone. Messages may have been lost.
    mutating func restateRises(
        of incarnation: Incarnation, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        for name in directory.lives.rising.sorted() {
            guard let life = directory.life(of: name), let rise = life.work.rise else { continue }
            if let host = life.work.hosts[incarnation], host.newest < rise.version {
                let text = "a node that does not understand it hosts the store again"
                endRise(of: name, failing: text, isOver: false, at: now, into: &effects)
            } else if rise.step == .rehearsing {
                directory.change(name) { $0.rise?.askAgain(incarnation) }
            } else if rise.asked.contains(incarnation) {
                sendMigrate(life, named: name, to: incarnation, into: &effects)
            }
        }
    }

    private func sendMigrate(
        _ life: StoreLife, named name: StoreName, to node: Incarnation,
        into effects: inout [SequencerEffect]
    ) {
        guard let rise = life.work.rise, let connection = sessions[node]?.connection else { return }
        let migrate = Migrate(
            store: name, life: life.record.life, schemaVersion: rise.version,
            snapshot: life.record.offer)
        effects.append(.send(.migrate(migrate), to: connection))
    }

    private func nodeName(_ incarnation: Incarnation) -> String {
        sessions[incarnation]?.name?.text ?? "node \(incarnation)"
    }

    /// Why a store that no program of its version hosts keeps its version, and what to do.
    private func unreplayed(_ name: StoreName, _ life: StoreLife) -> String {
        "no node hosts it, and its last snapshot lacks entries that only its present version may judge. Run a program "
            + "that can host version \(life.record.schemaVersion) (oldestSchemaVersion) once, or have the newer "
            + "program judge these entries again, which may change their outcomes: conflux upgrade \(name) --replay"
    }
}
