import ConfluxVocabulary

/// The floor: nobody can need the entries of the log below it (rule 36).
///
/// It is the lowest of
///
/// - the number after the older of the last two checkpoints, so that a start has a checkpoint even
///   if the newest can't be read;
/// - for each store that an entry after its snapshot concerns, the number after that snapshot, or
///   after what is kept aside for the store;
/// - the lowest number that ``Retention`` keeps.
///
/// With this alone, a store that receives few entries would make the log keep everything that other
/// stores receive. `reviewKeepers` prevents that.
extension SequencerMachine {
    mutating func checkpointSaved(
        _ sequence: SequenceNumber, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard sequence > checkpoints.last ?? .zero else { return }
        checkpoints = checkpoints.suffix(1) + [sequence]
        if phase == .serving { reviewFloor(at: now, into: &effects) }
    }

    /// The log has reached its reserve, or has room again. Discarded entries make room, as far as
    /// retention and the stores allow. Until there is room, batches are discarded and resubmitted,
    /// and no store is created.
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

    /// The lowest number that somebody may need, regardless of retention.
    private var lowestNeeded: SequenceNumber {
        // The older checkpoint is the fallback. Before there are two, nothing may be discarded.
        guard checkpoints.count == 2 else { return SequenceNumber(1) }
        var lowest = checkpoints[0].next
        for name in directory.lives.lives.keys {
            lowest = min(lowest, lowestNeeded(by: name) ?? lowest)
        }
        return lowest
    }

    /// The number after what is kept of a store. It is nil if no later entry concerns the store, or
    /// if nobody could begin with the entries that are left.
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

    /// Handles the stores for which the log keeps more than retention asks for. A store that is
    /// hosted gets a digest point, so that a snapshot is taken, unless its state is so large that a
    /// snapshot would cost more than the log that it frees. For other stores, the entries are kept
    /// aside, so that no abandoned store keeps the log for all.
    private mutating func reviewKeepers(
        below retained: SequenceNumber, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        // Nodes say in their hellos what they host, so it is unknown at first.
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

    /// Whether the log has grown enough since the store's last point, and since the last attempt.
    /// If nobody votes, or nobody sends the state that it voted for, later entries for other stores
    /// lead to another attempt. The spacing is needed since a point is an entry, too. A log that is
    /// nearly full gets no later entries, so the caller skips this check there.
    private func isPointWorthwhile(for name: StoreName, _ logBytes: UInt64) -> Bool {
        guard let life = directory.life(of: name) else { return false }
        let spacing = spacing(of: name)
        return tenure.marks.byteCount(behind: life.record.lastPoint) >= spacing
            && logBytes - life.work.point.keptLogBytes >= spacing
    }

    /// Whether keeping aside is worth its cost: everything that is kept aside is rewritten each
    /// time.
    private func isAsideDue(_ store: StoreRecord, below retained: SequenceNumber) -> Bool {
        guard store.aside?.reference != nil else { return true }
        let marks = tenure.marks
        return marks.byteCount(behind: store.keptThrough)
            >= marks.byteCount(behind: retained) + settings.retention.bytesMax / 8
    }

    /// The most stores for which one pass keeps entries aside. Others follow in the next pass.
    private static let asideJobsMax = 1_024
    /// A pass gets no further store once its stores have this many bytes kept aside already. A pass
    /// holds all of these bytes in memory.
    private static let asideFormerBytesMax: UInt64 = 32 << 20
    /// How long to wait after a failure before a store's entries are kept aside again.
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
            // Nobody opens the store, and it keeps receiving entries.
            if aside.reference?.byteCount ?? 0 > settings.asideBytesMax,
                let life = directory.life(place), !life.isFrozenAtAdmission, !life.hasVoter
            {
                say(.frozen(.abandoned), of: aside.store)
            }
        }
        if kept.contains(where: { $0.failure == nil }) { reviewFloor(at: now, into: &effects) }
    }
}
