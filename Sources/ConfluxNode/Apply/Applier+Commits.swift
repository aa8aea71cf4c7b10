import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Takes commits, and the lanes' reports on them.
extension Applier {
    func apply(_ commit: Commit, to recipients: Recipients) {
        if case .only(let subjects) = recipients {
            for case .state(let state) in subjects {
                if let locals = states[state]?.locals, recipients.include(locals) {
                    noteGap(before: commit.first, of: locals)
                }
            }
        }
        var (sequence, gathered) = (commit.first, Gathered())
        var points: [SnapshotPlace] = []
        begin(at: sequence, to: recipients)
        for block in commit.blocks {
            let last = sequence.advanced(by: UInt64(block.count) - 1)
            switch block {
            case .batch(let incarnation, let batch) where joins(batch, recipients):
                give(&gathered, through: SequenceNumber(sequence.rawValue - 1))
                begin(at: sequence, to: recipients)
                add(batch, of: incarnation, from: sequence, in: commit)
                give(&gathered, through: last, isJoint: true)
                begin(at: last.next, to: recipients)
            case .batch(let incarnation, let batch):
                add(batch, of: incarnation, from: sequence, in: commit)
            case .event(let event, _):
                apply(event, at: sequence, to: recipients, &points, &gathered.stopped)
            }
            sequence = last.next
        }
        give(&gathered, through: commit.last)
        for replica in gathered.stopped { tellStopped(replica) }
        // After the commit's batches have changed the stores.
        for place in points { digest(at: place) }
        if case .only(let subjects) = recipients {
            for subject in subjects {
                guard let progress = progress(of: subject), recipients.include(progress) else {
                    continue
                }
                progress.delivered = max(progress.delivered, commit.last)
            }
        }
        for progress in gathered.given { look(after: progress, through: commit.last) }
    }

    /// The most actions of a batch that several stores apply together. *Use*: bounds what is withheld from observers.
    private static let jointActionsMax = 1_024

    /// Whether several stores here apply a batch together, so that an observer sees all of it or nothing.
    private func joins(_ batch: Batch, _ recipients: Recipients) -> Bool {
        guard batch.isAtomic, batch.count <= Self.jointActionsMax else { return false }
        let concerned = batch.targets.flatMap { stores(concernedBy: $0.target) ?? [] }
        return concerned.count { recipients.include($0) } > 1
    }

    /// The stores that got their part of a commit, and those that stopped in it.
    private struct Gathered {
        var given: [StoreProgress] = []
        var stopped: [Replica] = []
    }

    private func begin(at first: SequenceNumber, to recipients: Recipients) {
        for stores in states.values { stores.runner?.begin(at: first, to: recipients) }
    }

    /// Gives the stores what was added for them since the last begin.
    private func give(
        _ gathered: inout Gathered, through last: SequenceNumber, isJoint: Bool = false
    ) {
        // If the process dies from now on, it dies of what a store applies.
        for stores in states.values { stores.runner?.endDecoding() }
        var joint: [JointRun]? = isJoint ? [] : nil
        for stores in states.values {
            guard
                let (given, stopped) = stores.runner?.flush(
                    through: last, in: epoch, joining: &joint)
            else { continue }
            gathered.given += given
            gathered.stopped += stopped
        }
        if let joint, !joint.isEmpty { JointRun.deliver(joint) }
    }

    private func add(
        _ batch: Batch, of incarnation: Incarnation, from first: SequenceNumber, in commit: Commit
    ) {
        let place = EntryPlace(
            log: commit.log, sequence: first, timestamp: commit.timestamp,
            origin: Origin(incarnation: incarnation, counter: batch.firstCounter))
        var former: [Name] = []
        func add(_ state: Name) {
            guard !former.contains(state) else { return }
            former.append(state)
            states[state]?.runner?.add(batch, at: place)
        }
        for row in batch.targets {
            switch row.target {
            case .store(let store): add(store.state)
            case .state(let state): add(state)
            case .event(_, let states): for state in states { add(state) }
            }
        }
    }

    private func tellStopped(_ replica: Replica) {
        guard let stop = replica.progress.stop, let sequence = stop.at else { return }
        announce(.storeStopped(replica.name, at: sequence, message: stop.message))
        reportStop(of: replica)
    }

    /// Lets the sequencer know that a replica has stopped.
    func reportStop(of replica: Replica) {
        guard let stop = replica.progress.stop else { return }
        report(
            .stopped(
                StoppedStore(
                    store: replica.name, life: replica.life, sequence: stop.at ?? replica.life)))
    }

    /// Passes a report on, if it belongs to the present history.
    func report(_ report: ApplyReport) {
        tell(.reported(report, resets: progress.resets))
    }

    /// Looks after a store that was given its part of a commit.
    private func look(after progress: StoreProgress, through sequence: SequenceNumber) {
        collect(progress)
        guard progress.hasOpenRuns else { return }
        switch progress.phase {
        case .attached, .catchingUp:
            if progress.openBytes > openBytesMax {
                progress.delivered = max(progress.delivered, sequence)
                progress.phase = .parked
                report(.parked(progress.subject, request: progress.request))
            } else if progress.phase == .attached, !busy.contains(where: { $0 === progress }) {
                busy.append(progress)
            }
        case .empty, .ready, .parked, .ended: break
        }
    }

    /// Takes the reports of a store's lane.
    func collect(_ progress: StoreProgress) {
        // Handling one report may cause the next.
        while case let reports = progress.reports.take(), !reports.isEmpty {
            for report in reports { take(report, of: progress) }
        }
        guard progress.phase == .parked, !progress.hasOpenRuns else { return }
        progress.phase = .ready
        report(
            .ready(progress.subject, through: progress.delivered, request: progress.request))
    }

    private func take(_ report: LaneReport, of progress: StoreProgress) {
        switch report {
        case .ran(let serial, let failures):
            progress.ran(serial, failures, own: outcomes.isEmpty ? [] : incarnations)
        case .decoded(let request, let snapshot):
            guard case .store(let store) = progress.subject else { break }
            replica(store)?.put(snapshot, request)
            post(.enter(store))
        case .restored(let request, let error):
            guard request == progress.request, progress.awaitsState else { break }
            progress.gotState()
            guard let error, case .store(let store) = progress.subject else { break }
            progress.stopWithoutState("the snapshot of \(store) can't be read: \(error)")
        case .copied(let request, let place, let encoding, let version):
            // Reports on a former state no longer count, and neither do its refusals.
            guard request == progress.request else { break }
            vote(
                at: place, encoding, version: version, refusals: progress.effects.takeDigest())
        }
    }
}
