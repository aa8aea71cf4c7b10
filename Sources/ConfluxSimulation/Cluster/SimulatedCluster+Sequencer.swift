import ConfluxLog
import ConfluxProtocol
import ConfluxSequencer
import ConfluxVocabulary

/// The sequencers: what the serving thread and the log's thread do in a real process.
extension SimulatedCluster {
    func startSequencer() {
        // One process has the address. A rival begins only while the former one is paused.
        if let listening, let running = sequencers[listening], !running.isPaused { return }
        let process = takeProcess()
        let log = SimulatedLog(
            disk: disk, nextFault: { [unowned self] in logFault(at: $0) },
            appended: { [unowned self] in appended($0) },
            saved: { [unowned self] in saved($0, $1) },
            refused: { [unowned self] in marks.hit(.logFull) })
        let isNewestDamaged = strikes(plan.damagedCheckpoint)
        log.isNewestDamaged = isNewestDamaged
        let sequencer = SimulatedSequencer(
            process: process, settings: settings, log: log,
            checkpointBytes: plan.keeping.checkpointBytes,
            clockOffset: Int64(random.int(in: -2_000...2_000)) * 1_000_000,
            isNewestDamaged: isNewestDamaged)
        sequencers[process] = sequencer
        if let listening, sequencers[listening] != nil {
            marks.hit(.rivalStarted)
            trace.note(now, "sequencer \(process) starts, while \(listening) is stopped")
            // Some nodes soon find the rival; the others stay with the former sequencer.
            breakAll(of: listening) { random.chance(0.6) }
        } else {
            trace.note(now, "sequencer \(process) starts")
        }
        listening = process
        post(.claim(.random(using: &random)), sequencer)
    }

    func appended(_ commit: LoggedCommit) {
        do throws(Violation) {
            try truth.appended(commit, at: reading(in: commit.epoch))
            if let commit = truth.branch.commits.last?.commit { try lookAtEvents(of: commit) }
            trace.note(now, "log: \(commit.first)…\(commit.last) of epoch \(commit.epoch)")
        } catch {
            fail(error)
        }
    }

    func saved(_ snapshot: SavedSnapshot, _ bytes: Bytes) {
        do throws(Violation) {
            try truth.snapshots.saved(snapshot, bytes, in: truth.branch)
            savedAt[snapshot.store] = now
            trace.note(
                now,
                "log: snapshot of \(snapshot.key), \(bytes.count) bytes, version "
                    + "\(snapshot.schemaVersion), \(snapshot.kind)")
            try checkNeed(of: snapshot.store)
        } catch {
            fail(error)
        }
    }

    private func logFault(at work: SimulatedLog.Work) -> SimulatedLog.Fault {
        // Truncation is rarer than other work, and a term survives its failures.
        if strikes(work == .truncate ? min(0.5, plan.logFailure * 8) : plan.logFailure) {
            marks.hit(.logFailed)
            return .failed
        }
        guard strikes(plan.unknownAppend) else { return .none }
        let isDone = random.chance(0.5)
        marks.hit(isDone ? .appendUnknownLanded : .appendUnknownLost)
        return .unknown(isDone: isDone)
    }

    // MARK: The log's thread

    /// How long the disk takes. After faults have ended it is fast: a cluster whose log grows faster than it
    /// can be read or truncated never becomes current.
    var logLatency: Duration {
        isHostile ? random.duration(in: plan.logLatency) : plan.logLatency.lowerBound
    }

    func post(_ job: LogJob, _ sequencer: SimulatedSequencer) {
        sequencer.logJobs.append(job)
        guard sequencer.standby == nil else { return call(sequencer) }
        var takes = logLatency
        if strikes(plan.slowLog) {
            marks.hit(.logSlow)
            takes = random.duration(in: .milliseconds(50)...(.seconds(3)))
        }
        if case .append(let append) = job, append.commits.count > 1 { marks.hit(.commitCut) }
        sequencer.logFreeAt = max(sequencer.logFreeAt, now) + takes
        timeline.schedule(.workLog(process: sequencer.process), at: sequencer.logFreeAt)
    }

    func workLog(_ sequencer: SimulatedSequencer) throws(Violation) {
        guard !sequencer.logJobs.isEmpty else { return }
        guard sequencer.standby == nil else { return try hearCall(of: sequencer) }
        guard !crashesAtWord(sequencer) else { return try crash(sequencer) }
        let done = sequencer.work()
        if let violation { throw violation }
        let isOver = !sequencer.gate.admits(done.term)
        // Other jobs have their turn before it continues.
        if let rest = done.rest, !isOver { post(rest, sequencer) }
        takeReader(of: sequencer)
        try makeCheckpoint(sequencer)
        guard !isOver else { return }
        for input in done.inputs { try handle(input, sequencer) }
    }

    /// Takes the reader of a term that begins.
    func takeReader(of sequencer: SimulatedSequencer) {
        if let (epoch, reader) = sequencer.answers.reader {
            sequencer.answers.reader = nil
            read(.reading(through: reader), sequencer, of: epoch)
        }
    }

    /// Adds a job for the reading thread.
    private func read(_ job: ReaderJob, _ sequencer: SimulatedSequencer, of epoch: Epoch? = nil) {
        sequencer.readJobs.append((epoch ?? sequencer.machine.epoch, job))
        var takes = logLatency
        if strikes(plan.slowRead) {
            marks.hit(.readSlow)
            takes += random.duration(in: .milliseconds(10)...(.seconds(1)))
        }
        sequencer.readFreeAt = max(sequencer.readFreeAt, now) + takes
        timeline.schedule(.workReads(process: sequencer.process), at: sequencer.readFreeAt)
    }

    func workReads(_ sequencer: SimulatedSequencer) throws(Violation) {
        guard !sequencer.readJobs.isEmpty else { return }
        let (inputs, rest) = sequencer.read()
        if let rest { read(rest, sequencer) }
        if let run = sequencer.answers.gathered {
            sequencer.answers.gathered = nil
            post(.rest(.keepAside(run), of: sequencer.machine.epoch), sequencer)
        }
        for input in inputs { try handle(input, sequencer) }
    }

    /// What the checkpoint thread does: its pieces are saved between other jobs.
    func makeCheckpoint(_ sequencer: SimulatedSequencer) throws(Violation) {
        guard let due = sequencer.answers.due else { return }
        sequencer.answers.due = nil
        do throws(CheckpointFailure) {
            guard let made = try due.make() else { return }
            marks.hit(.checkpointMade)
            for piece in made.pieces(of: 1_024) { post(.save(piece, { _ in }), sequencer) }
        } catch {
            // If the log can't be read now, the checkpoint is made later.
            guard sequencer.standby == nil else { return }
            throw Violation("checkpoint", "a checkpoint can't be made: \(error.message)")
        }
    }

    // MARK: The serving thread

    func handle(_ input: SequencerInput, _ sequencer: SimulatedSequencer) throws(Violation) {
        guard sequencers[sequencer.process] != nil else { return }
        if strikes(plan.clockJump) {
            marks.hit(.clockJumped)
            sequencer.clockOffset = Int64(random.int(in: -60_000...60_000)) * 1_000_000
        }
        var effects: [SequencerEffect] = []
        sequencer.machine.handle(
            input, at: moment(of: sequencer), into: &effects)
        do throws(BrokenInvariant) {
            try sequencer.machine.checkInvariants()
        } catch {
            throw Violation("invariant", "sequencer \(sequencer.process): \(error)")
        }
        if case .received(.fetch, _, _, _) = input, effects.isEmpty { marks.hit(.fetchWaited) }
        for effect in effects {
            try carryOut(effect, sequencer)
            if strikes(plan.crashAtEffect) {
                marks.hit(.sequencerCrashedAtEffect)
                trace.note(now, "sequencer \(sequencer.process) crashes behind an effect")
                try crash(sequencer)
            }
            guard sequencers[sequencer.process] != nil else { return }
        }
        if case .appended = input { return try handle(.published, sequencer) }
        if case .drained = input {} else { scheduleDrain(sequencer) }
        scheduleTick(sequencer)
    }

    private func scheduleDrain(_ sequencer: SimulatedSequencer) {
        guard !sequencer.isDrainScheduled else { return }
        sequencer.isDrainScheduled = true
        schedule(
            .drained(process: sequencer.process),
            after: random.duration(in: .zero...(.microseconds(300))))
    }

    func scheduleTick(_ sequencer: SimulatedSequencer) {
        guard let reading = sequencer.nextDeadline else { return }
        let due = sequencer.clock.time(of: reading)
        if let at = sequencer.tickAt, at <= due { return }
        sequencer.tickAt = due
        timeline.schedule(.sequencerTick(process: sequencer.process), at: max(due, now))
    }

    private func carryOut(
        _ effect: SequencerEffect, _ sequencer: SimulatedSequencer
    ) throws(Violation) {
        switch effect {
        case .readCheckpoint(let last): post(.readCheckpoint(through: last), sequencer)
        case .readLog(let from): post(.read(from: from), sequencer)
        case .append(let append): post(.append(append), sequencer)
        case .read(let job): read(.read(job), sequencer)
        case .makeRoom: post(.makeRoom, sequencer)
        case .confirmTerm: post(.confirm, sequencer)
        case .reloadKeys, .bar: preconditionFailure("nobody here has keys")
        case .readSnapshots: post(.readSnapshots, sequencer)
        case .saveSnapshot(let part): post(.saveSnapshot(part), sequencer)
        case .removeSnapshots(let store): post(.removeSnapshots(store), sequencer)
        case .truncate(let floor):
            try checkFloor(floor, sequencer)
            post(.truncate(below: floor), sequencer)
        case .keepAside(let stores, let last):
            marks.hit(.keptAside)
            let run = AsideRun(
                stores, through: last, heldBytesMax: plan.keeping.asideHeldBytesMax)
            read(.gather(run), sequencer)
        case .serve(let beat): try serve(beat, sequencer)
        case .publishCommit(let frame): try publish(commit: Array(frame), sequencer)
        case .publishBeat(let beat):
            try truth.claimed(beat.last, durableThrough: disk.durableThrough)
            publish(Frame.encode(beat, epoch: sequencer.machine.epoch), sequencer)
        case .send(let message, let connection):
            if case .answer(let answer) = message { try check(answer, of: sequencer) }
            try send(message, to: connection.rawValue, sequencer)
        case .note(let note): take(note, sequencer)
        case .end(let reason): end(sequencer, reason)
        }
    }

    private func serve(_ beat: Beat, _ sequencer: SimulatedSequencer) throws(Violation) {
        trace.note(now, "sequencer \(sequencer.process) serves epoch \(sequencer.machine.epoch)")
        sequencer.isServing = true
        truth.snapshots.forgetVotes()
        sequencer.welcome = Frame.encode(beat, epoch: sequencer.machine.epoch)
        // Messages that waited in the sockets are read now.
        for (connection, count) in sequencer.waiting.sorted(by: { $0.key < $1.key }) {
            for _ in 0..<count { schedule(.arriveUp(connection: connection), after: .zero) }
        }
        sequencer.waiting = [:]
    }

    private func publish(
        commit frame: [UInt8], _ sequencer: SimulatedSequencer
    ) throws(Violation) {
        do {
            if case .commit(let commit) = try Frame.decodeFeedMessage(frame[...]) {
                try truth.published(commit, durableThrough: disk.durableThrough)
                toldThrough = max(toldThrough, commit.last)
                trace.note(now, "feed: \(commit.first)…\(commit.last)")
            }
        } catch let violation as Violation {
            throw violation
        } catch {
            throw Violation("order", "an unreadable commit was published")
        }
        publish(frame, sequencer)
    }

    private func take(_ note: SequencerNote, _ sequencer: SimulatedSequencer) {
        trace.note(now, "sequencer \(sequencer.process) notes \(note)")
        switch note {
        case .left: marks.hit(.left)
        case .created: marks.hit(.created)
        case .barred: preconditionFailure("nobody here has keys")
        case .challenged: marks.hit(.challenged)
        case .recovered(let from, _):
            if from > .zero { marks.hit(.startedFromCheckpoint) }
            if disk.shelves.floor > SequenceNumber(1) { marks.hit(.startedAboveFloor) }
        case .checkpointSetAside(let sequence, let reason):
            if sequencer.isNewestDamaged {
                marks.hit(disk.shelves.floor > SequenceNumber(1) ? .fallbackAboveFloor : .fallback)
                break
            }
            // No other fault leads to a checkpoint that does not fit.
            fail("checkpoint", "the checkpoint at \(sequence) was set aside: \(reason)")
        case .slowed: marks.hit(.admissionSlowed)
        case .joined, .dropped, .historyLost, .unreadable, .resumed: break
        case .upgraded: marks.hit(.upgraded)
        case .upgradeFailed(_, _, let reason): noteFailedUpgrade(reason)
        case .frozen(_, let reason): marks.hit(reason == .asked ? .frozen : .frozenUnconfirmed)
        case .thawed: marks.hit(.thawed)
        case .skipped: marks.hit(.skipped)
        case .snapshotTaken: marks.hit(.snapshotTaken)
        case .snapshotFailed: marks.hit(.snapshotFailed)
        case .sourcePassedOver(_, _, _, _, let reason):
            if reason.contains("digest") { marks.hit(.digestMismatch) }
        case .snapshotsUnlisted: marks.hit(.unlisted)
        case .logNearlyFull: marks.hit(.logNearlyFull)
        case .logHasRoom: marks.hit(.logHasRoom)
        case .asideFailed, .damaged, .clock: break
        case .diverged(let store, let status):
            marks.hit(status.isMajority ? .divergedMajority : .divergedNone)
            if status.path != nil { marks.hit(.located) }
            checkSpoilt(store, "the sequencer")
        case .converged: marks.hit(.converged)
        case .truncated: marks.hit(.truncated)
        case .truncateFailed: marks.hit(.truncateFailed)
        }
    }

    // MARK: Ends

    private func end(_ sequencer: SimulatedSequencer, _ reason: SequencerEnd) {
        trace.note(now, "sequencer \(sequencer.process) ends: \(reason)")
        guard sequencer.standby == nil else { return endTerm(of: sequencer, reason) }
        switch reason {
        case .stopped, .handedOver: marks.hit(.sequencerStopped)
        case .superseded: marks.hit(.superseded)
        case .logFailed:
            // The process continues with another term (rule 3), or it is told to end.
            if random.chance(0.7) {
                marks.hit(.termRenewed)
                sequencer.beginAnew()
                sequencer.gate.ask()
                schedule(
                    .renewTerm(process: sequencer.process),
                    after: random.duration(in: .milliseconds(100)...(.seconds(2))))
                return
            }
        case .logDamaged(let what), .logMoved(let what):
            fail("order", "the log is damaged: \(what)")
        }
        remove(sequencer)
    }

    /// Crashes the process. The present job of the log's thread was done, or not.
    func crash(_ sequencer: SimulatedSequencer) throws(Violation) {
        // A request that is not answered yet is the first job.
        if let job = sequencer.isLogAsked ? sequencer.logJobs.first : nil {
            guard case .append = job else {
                if random.chance(0.5) { sequencer.worker.work(job) }
                if let violation { throw violation }
                remove(sequencer)
                return
            }
            if random.chance(0.5) {
                marks.hit(.crashedBehindAppend)
                sequencer.worker.work(job)
                if let violation { throw violation }
            } else {
                marks.hit(.crashedBeforeAppend)
            }
        }
        remove(sequencer)
    }

    func remove(_ sequencer: SimulatedSequencer) {
        noteRises(sequencer)
        sequencers[sequencer.process] = nil
        sequencer.worker.work(.close)
        breakAll(of: sequencer.process)
        if let standby = sequencer.standby { return leavePlace(standby.slot) }
        guard listening == sequencer.process else { return }
        listening = nil
        // A log in memory ends with its process.
        if plan.durability == .memory, !disk.commits.isEmpty {
            marks.hit(.memoryLost)
            disk.forget(as: .random(using: &random))
            loseHistory()
        }
        schedule(.startSequencer, after: random.duration(in: .milliseconds(20)...(.seconds(4))))
    }

    /// What a sequencer's clocks show.
    func moment(of sequencer: SimulatedSequencer) -> Moment {
        Moment(
            monotonic: sequencer.clock.reading(at: now),
            wall: moment(offset: sequencer.clockOffset).wall)
    }

    func moment(offset: Int64 = 0) -> Moment {
        let wall = 1_700_000_000_000_000_000 + Int64(now.microseconds) * 1_000 + offset
        return Moment(monotonic: now, wall: Timestamp(wall))
    }
}
