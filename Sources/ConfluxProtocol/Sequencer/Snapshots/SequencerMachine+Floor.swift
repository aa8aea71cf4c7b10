import ConfluxVocabulary

/// The floor: what of the log nobody can need any more (rule 36).
///
/// It is the lowest of
///
/// - the number behind the older of the last two checkpoints, so that a start has one to begin with
///   even when the newest can't be read;
/// - for each store that an entry behind its snapshot concerns, the number behind that snapshot, or
///   behind what is kept aside for it;
/// - what is kept by ``Retention``.
///
/// A store of which little comes would so keep all that comes for others: see `reviewKeepers`.
extension SequencerMachine {
    mutating func checkpointSaved(
        _ sequence: SequenceNumber, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard sequence > checkpoints.last ?? .zero else { return }
        checkpoints = checkpoints.suffix(1) + [sequence]
        if phase == .serving { reviewFloor(at: now, into: &effects) }
    }

    /// The log has no room, or has some again. What it gives up makes room, as far as retention and the
    /// stores allow; until then batches are discarded, and come again, and no store begins.
    mutating func roomChanged(
        _ isNearlyFull: Bool, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        isLogNearlyFull = isNearlyFull
        effects.append(
            .note(isNearlyFull ? .logNearlyFull(retained: retainedWords) : .logHasRoom))
        if phase == .serving { reviewFloor(at: now, into: &effects) }
    }

    private var retainedWords: String {
        let retention = settings.retention
        let entries = retention.entriesMax.map { ", \($0) entries" } ?? ""
        return "\(retention.bytesMax) bytes\(entries)"
    }

    /// The lowest number that somebody may need, whatever is retained.
    private var lowestNeeded: SequenceNumber {
        // The older one is the one to fall back on.
        guard checkpoints.count == 2 else { return SequenceNumber(1) }
        var lowest = checkpoints[0].next
        for name in directory.lives.lives.keys {
            lowest = min(lowest, lowestNeeded(by: name) ?? lowest)
        }
        return lowest
    }

    /// The number behind what is kept of a store; nil if no entry behind that concerns it, or nobody
    /// could begin with those that are there.
    private func lowestNeeded(by name: StoreName) -> SequenceNumber? {
        guard let life = directory.life(of: name), life.work.missing == nil,
            directory.stamp(of: name) > life.record.keptThrough
        else { return nil }
        return life.record.keptThrough.next
    }

    mutating func reviewFloor(at now: Moment, into effects: inout [SequencerEffect]) {
        floorReviewAt = now.monotonic + settings.floorReviewInterval
        let retained = tenure.marks.floor(
            keeping: settings.retention, through: tenure.last, at: tenure.stamped(now.wall))
        guard retained > tenure.floor else { return }
        let floor = min(retained, lowestNeeded)
        if floor > tenure.floor {
            tenure.truncate(below: floor)
            directory.forgetSkips(below: floor)
            effects.append(.note(.truncated(below: floor)))
            effects.append(.truncate(below: floor))
        }
        if floor < retained { reviewKeepers(below: retained, at: now.monotonic, into: &effects) }
    }

    /// Looks after the stores for which more is kept than is retained. One that is hosted is digested
    /// for a snapshot, but for a large one, of which a snapshot would cost more than the log that it
    /// frees. Of others the entries are kept aside, so that no abandoned store keeps the log for all.
    private mutating func reviewKeepers(
        below retained: SequenceNumber, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        // Who hosts what is heard by their hellos.
        let isEarly = now < servingSince + settings.silenceMax
        let logBytes = tenure.marks.byteCount
        var jobs: [AsideJob] = []
        var formerBytes: UInt64 = 0
        for name in directory.lives.lives.keys.sorted() {
            guard let needed = lowestNeeded(by: name), needed < retained,
                let life = directory.life(of: name)
            else { continue }
            let store = life.record
            if store.isFrozen || !life.hasVoter {
                guard !isEarly || store.isFrozen, life.work.asideRetryAt ?? now <= now,
                    isAsideDue(store, below: retained), jobs.count < Self.asideJobsMax,
                    formerBytes < Self.asideFormerBytesMax
                else { continue }
                formerBytes += store.aside?.reference?.byteCount ?? 0
                jobs.append(
                    AsideJob(
                        store: name, life: store.life, after: store.keptThrough,
                        former: store.aside?.reference))
            } else if life.work.upload == nil,
                directory.lives.readyCount < PointPlan.perCommitMax,
                isLogNearlyFull || isPointWorthwhile(for: name, logBytes)
            {
                directory.change(name) { $0.point.want(keeping: logBytes) }
            }
        }
        guard !jobs.isEmpty, !isKeepingAside else { return }
        isKeepingAside = true
        effects.append(.keepAside(jobs, through: SequenceNumber(retained.rawValue - 1)))
    }

    /// Whether enough of the log grew since the last point. Where nobody votes, or nobody sends what it
    /// voted for, it is tried again with what comes next for others: a point is an entry, too. But in a
    /// log that is nearly full nothing comes next.
    private func isPointWorthwhile(for name: StoreName, _ logBytes: UInt64) -> Bool {
        guard let life = directory.life(of: name) else { return false }
        let spacing = spacing(of: name)
        return tenure.marks.byteCount(behind: life.record.lastPoint) >= spacing
            && logBytes - life.work.point.keptLogBytes >= spacing
    }

    /// Whether it is worth the while: what is kept aside is written anew each time.
    private func isAsideDue(_ store: StoreRecord, below retained: SequenceNumber) -> Bool {
        guard store.aside?.reference != nil else { return true }
        let marks = tenure.marks
        return marks.byteCount(behind: store.keptThrough)
            >= marks.byteCount(behind: retained) + settings.retention.bytesMax / 8
    }

    /// For how many stores entries are kept aside in one go. Others follow in the next one.
    private static let asideJobsMax = 1_024
    /// Behind how many bytes that are kept aside already no further store is added to a pass, which
    /// holds all of them.
    private static let asideFormerBytesMax: UInt64 = 32 << 20
    /// When it is tried again to keep a store's entries aside.
    private static let asidePatience = Duration.seconds(60)

    mutating func keptAside(
        _ kept: [AsideKept], at now: Moment, into effects: inout [SequencerEffect]
    ) {
        isKeepingAside = false
        guard phase == .serving else { return }
        for aside in kept {
            let place = SnapshotPlace(
                store: aside.store, life: aside.life, sequence: aside.through)
            if let failure = aside.failure {
                let retryAt = now.monotonic + Self.asidePatience
                directory.change(place) { $0.retryAside(at: retryAt) }
                effects.append(.note(.asideFailed(aside.store, failure)))
                continue
            }
            directory.keep(
                StoreRecord.Aside(through: aside.through, reference: aside.reference),
                of: aside.store, life: aside.life)
            // It is not opened any more, and more and more comes for it.
            if aside.reference?.byteCount ?? 0 > settings.asideBytesMax,
                let life = directory.life(place), !life.isFrozenAtAdmission, !life.hasVoter
            {
                say(.frozen(.abandoned), of: aside.store)
            }
        }
        if kept.contains(where: { $0.failure == nil }) { reviewFloor(at: now, into: &effects) }
    }
}
