import ConfluxVocabulary

/// The floor: nobody can need the entries of the log below it (rule 36).
///
/// It is the lowest of
///
/// - the number after the older of the last two checkpoints, so that a start has a checkpoint even
///   if the newest can't be read;
/// - for each store that an entry after its snapshot concerns, the number after that snapshot, or
///   after what is kept aside for the store, unless neither an entry nor a digest point follows;
/// - the lowest number that ``Retention`` keeps.
///
/// With this alone, a store that receives few entries would make the log keep everything that other
/// stores receive. `reviewKeepers` prevents that. And a log that may not grow further needs more
/// than retention allows: see ``LogSpace/Room``.
///
/// | room | what is discarded | stores whose snapshots are older than that |
/// |---|---|---|
/// | ample | what retention does not keep | hosted: a snapshot, if it is worth its cost; not hosted: kept aside |
/// | scarce | the same | from the older half of the log on; where two snapshots failed: kept aside |
/// | nearly full | half of the log in each review, whatever retention keeps; superseded snapshots | the same, at any cost |
///
/// While the log is not ample, no store gets more entries after its snapshot than can be kept aside: its actions wait
/// for a snapshot, or for the freezing of the store (`storeHoldingUp`, `reviewUnsaved`).
extension SequencerMachine {
    mutating func checkpointSaved(
        _ sequence: SequenceNumber, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard sequence > checkpoints.last ?? .zero else { return }
        checkpoints = checkpoints.suffix(1) + [sequence]
        if phase == .serving { reviewFloor(at: now, into: &effects) }
    }

    /// Whether the log is full but for its reserve. While it is, no action of a node is admitted:
    /// batches are discarded and resubmitted, and no store is created.
    var isLogNearlyFull: Bool { space.room == .nearlyFull }

    /// The log has less room, or more again.
    mutating func spaceChanged(
        _ space: LogSpace, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        let wasNearlyFull = isLogNearlyFull
        let isAlike = space.isAlike(self.space)
        self.space = space
        if isAlike { return }
        if wasNearlyFull, !isLogNearlyFull {
            reportedHold = nil
            effects.append(.note(.logHasRoom))
        }
        // Before the term serves, it does not know what holds the log.
        if phase == .serving { reviewFloor(at: now, into: &effects) }
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

    /// The number after what is kept of a store. It is nil if an opener needs nothing later, or if
    /// nobody could begin with the entries that are left.
    func lowestNeeded(by name: StoreName) -> SequenceNumber? {
        guard let life = directory.life(of: name), life.work.missing == nil,
            directory.lastNeeded(by: name) > life.record.keptThrough
        else { return nil }
        return life.record.keptThrough.next
    }

    mutating func reviewFloor(at now: Moment, into effects: inout [SequencerEffect]) {
        floorReviewAt = now.monotonic + settings.floorReviewInterval
        reviewUnsaved(at: now.monotonic)
        var retained = term.marks.floor(
            keeping: settings.retention, through: term.last, at: stamp(at: now, into: &effects))
        let half = term.marks.floor(keepingHalfFrom: term.floor)
        if isLogNearlyFull { retained = max(retained, half) }
        let wanted = space.room == .ample ? retained : max(retained, half)
        if wanted > term.floor {
            let needed = lowestNeeded
            let floor = min(retained, needed)
            if floor > term.floor {
                term.truncate(below: floor)
                directory.forgetSkips(below: floor)
                effects.append(.note(.truncated(below: floor)))
                if !isLogNearlyFull { effects.append(.truncate(below: floor)) }
            }
            if needed < wanted { reviewKeepers(below: wanted, at: now.monotonic, into: &effects) }
        }
        if isLogNearlyFull {
            // In each review: what fills the log may be no entries, but snapshots that it can give up.
            effects.append(.truncate(below: term.floor))
            reviewHold(into: &effects)
        }
    }

    /// Handles the stores for which the log keeps more than it should. A store that is hosted gets a
    /// digest point, so that a snapshot is taken, unless its state is so large that a snapshot would
    /// cost more than the log that it frees. For other stores, the entries are kept aside, so that no
    /// abandoned store keeps the log for all.
    private mutating func reviewKeepers(
        below retained: SequenceNumber, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        let logBytes = term.marks.byteCount
        var jobs: [AsideJob] = []
        var formerBytes: UInt64 = 0
        for name in directory.lives.lives.keys.sorted() {
            guard let needed = lowestNeeded(by: name), needed < retained,
                let life = directory.life(of: name)
            else { continue }
            let store = life.record
            if isUnsavable(life) {
                guard !isEarly(at: now) || store.isFrozen,
                    life.work.asideFailedAt.map({ now >= $0 + asidePatience }) ?? true,
                    isAsideDue(store, below: retained), jobs.count < Self.asideJobsMax,
                    formerBytes < Self.asideFormerBytesMax
                else { continue }
                formerBytes += store.aside?.reference?.byteCount ?? 0
                jobs.append(
                    AsideJob(
                        store: name, life: store.life, after: store.keptThrough,
                        former: store.aside?.reference))
            }
            // If a snapshot failed, a later one may not. But if the log is kept for nothing but the last attempt,
            // another one would keep it as well.
            if life.hasVoter, !store.isFrozen, life.work.upload == nil,
                !isUnsavable(life) || directory.stamp(of: name) > store.keptThrough,
                directory.lives.readyCount < PointPlan.perCommitMax,
                isPointWorthwhile(for: name, logBytes)
            {
                directory.change(name) { $0.point.want(keeping: logBytes) }
            }
        }
        guard !jobs.isEmpty, !isKeepingAside else { return }
        isKeepingAside = true
        effects.append(.keepAside(jobs, through: SequenceNumber(retained.rawValue - 1)))
    }

    /// Whether it is too early to say which stores are hosted: nodes say so in their hellos.
    private func isEarly(at now: Duration) -> Bool { now < servingSince + settings.silenceMax }

    /// Whether no snapshot of the store can be expected, so that its entries are kept aside. If a
    /// snapshot failed, the log waits for the next one, and for further ones as long as it has room.
    private func isUnsavable(_ life: StoreLife) -> Bool {
        life.record.isFrozen || !life.hasVoter
            || (space.room > .ample && life.work.hasFailedTwice)
    }

    /// Sees to the stores with so many entries since their last snapshot that these can hardly be kept aside any
    /// more: earlier while the log has little room. What nobody hosts is frozen. What is hosted gets a snapshot, or is
    /// frozen if none can be taken. A nearly full log gets a snapshot in place of what is kept aside.
    private mutating func reviewUnsaved(at now: Duration) {
        let spacing = min(settings.asideBytesMax, space.limitBytes / 64)
        let isDue = term.marks.byteCount - unsavedReviewBytes >= spacing
        guard isDue || space.room > .ample else { return }
        let isEarly = isEarly(at: now)
        if !isEarly { unsavedReviewBytes = term.marks.byteCount }
        asideBytesMax = asideBytesLeft
        for name in directory.lives.lives.keys.sorted() {
            guard let life = directory.life(of: name), !life.isFrozenAtAdmission else { continue }
            let isReplaceable = isLogNearlyFull && life.record.aside?.reference != nil
            guard lowestNeeded(by: name) != nil || (life.hasVoter && isReplaceable) else {
                continue
            }
            let isMuch = asideBytes(of: name, life) > asideBytesMax
            if !life.hasVoter {
                guard !isEarly else { continue }
                if isMuch || isLogNearlyFull {
                    say(.frozen(.abandoned), of: name)
                } else {
                    freezeUnsaved(name)
                }
            } else if isMuch || isReplaceable, life.work.upload == nil, !life.work.votes.isOpen {
                if life.work.hasFailedTwice {
                    if isMuch { say(.frozen(.unconfirmed), of: name) }
                } else if !life.work.point.isAdmitted {
                    directory.change(name) { $0.point.want() }
                }
            }
        }
    }

    /// The most bytes to keep aside for a store that is not frozen. What is kept aside, and what nobody hosts, may
    /// take half of the log's bound: each store gets half of what is left of that (rule 48). While the log has little
    /// room, it is no more than an eighth of the bound.
    private var asideBytesLeft: UInt64 {
        let half = space.limitBytes / 2
        var used: UInt64 = 0
        for (name, life) in directory.lives.lives {
            used +=
                life.hasVoter || lowestNeeded(by: name) == nil
                ? life.record.aside?.reference?.byteCount ?? 0 : asideBytes(of: name, life)
        }
        let left = (half - min(used, half)) / 2
        return space.room == .ample
            ? left : min(left, space.limitBytes / 8, settings.asideBytesMax)
    }

    /// Whether a batch fits into the commit that is being gathered. In a small log commits are small, so that those
    /// under way fit into the reserve when all else is used.
    func fitsCommit(bytes: Int) -> Bool {
        let gathered = pipeline.gatheringBytes
        return pipeline.hasRoom(bytes: bytes)
            && (gathered <= Self.ownBytes
                || gathered + bytes <= Int(clamping: space.limitBytes / 32))
    }

    /// What a commit may have without a batch: its header, and the sequencer's own entries.
    private static let ownBytes = 4 << 10

    /// The store that holds up a batch.
    func storeHoldingUp(_ batch: Batch) -> StoreName? {
        guard space.room > .ample || !directory.lives.rising.isEmpty else { return nil }
        for row in batch.targets[..<batch.entryRows] {
            if let store = storeHoldingUp(row.target) { return store }
        }
        return nil
    }

    /// The store that holds up entries for a target: the log is scarce, and so many entries have concerned the store
    /// since its last snapshot that more of them could not be kept aside. They wait until a snapshot is taken, or the
    /// store is frozen: see `reviewUnsaved`. Or its schema version is about to rise.
    package func storeHoldingUp(_ target: Target) -> StoreName? {
        if !directory.lives.rising.isEmpty {
            let rising = directory.names(concernedBy: target).first {
                directory.life(of: $0)?.work.rise?.step.isHolding == true
            }
            if let rising { return rising }
        }
        guard space.room > .ample else { return nil }
        return directory.names(concernedBy: target).first { name in
            // Otherwise its snapshot includes them all.
            guard lowestNeeded(by: name) != nil, let life = directory.life(of: name) else {
                return false
            }
            return !life.isFrozenAtAdmission && asideBytes(of: name, life) > asideBytesMax
        }
    }

    /// The most bytes that a store's entries since its snapshot take if they are kept aside: what is kept already, and
    /// every later entry with a commit and a batch of its own. Those are at most twice what the log has of them.
    private func asideBytes(of name: StoreName, _ life: StoreLife) -> UInt64 {
        let store = life.record
        let last = max(directory.stamp(of: name), store.keptThrough)
        let count = last.rawValue - store.keptThrough.rawValue
        let own = unsavedBytes(of: name) + AsideEntries.headBytesMax * count
        return (store.aside?.reference?.byteCount ?? 0)
            + min(own, 2 * term.marks.byteCount(behind: store.keptThrough))
    }

    /// Whether the log has grown enough since the store's last point, and since the last attempt.
    /// If nobody votes, or nobody sends the state that it voted for, later entries for other stores
    /// lead to another attempt. The spacing is needed since a point is an entry, too. A log that is
    /// nearly full gets no later entries, so there a point is worthwhile whenever no vote is awaited.
    private func isPointWorthwhile(for name: StoreName, _ logBytes: UInt64) -> Bool {
        guard let life = directory.life(of: name) else { return false }
        if isLogNearlyFull { return true }
        var spacing = spacing(of: name)
        if space.room == .scarce { spacing = max(settings.digestBytesMin, spacing / 8) }
        return term.marks.byteCount(behind: life.record.lastPoint) >= spacing
            && logBytes - life.work.point.keptLogBytes >= spacing
    }

    /// Whether keeping aside is worth its cost: everything that is kept aside is rewritten each
    /// time.
    private func isAsideDue(_ store: StoreRecord, below retained: SequenceNumber) -> Bool {
        guard store.aside?.reference != nil, !isLogNearlyFull else { return true }
        let marks = term.marks
        return marks.byteCount(behind: store.keptThrough)
            >= marks.byteCount(behind: retained)
            + min(settings.retention.bytesMax / 8, space.limitBytes / 32)
    }

    /// The most stores for which one pass keeps entries aside. Others follow in the next pass.
    private static let asideJobsMax = 1_024
    /// A pass gets no further store once its stores have this many bytes kept aside already. A pass
    /// holds all of these bytes in memory.
    private static let asideFormerBytesMax: UInt64 = 32 << 20
    /// How long to wait after a failure before a store's entries are kept aside again.
    private var asidePatience: Duration {
        isLogNearlyFull ? settings.floorReviewInterval * 5 : .seconds(60)
    }

    mutating func keptAside(
        _ kept: [AsideKept], at now: Moment, into effects: inout [SequencerEffect]
    ) {
        isKeepingAside = false
        guard phase == .serving else { return }
        for aside in kept {
            let place = SnapshotPlace(
                store: aside.store, life: aside.life, sequence: aside.through)
            if let failure = aside.failure {
                directory.change(place) { $0.failAside(failure, at: now.monotonic) }
                effects.append(.note(.asideFailed(aside.store, failure)))
                continue
            }
            directory.change(place) { $0.keptAside() }
            directory.keep(
                StoreRecord.Aside(through: aside.through, reference: aside.reference),
                of: aside.store, life: aside.life)
            // The store keeps receiving entries, and there is still no snapshot.
            if aside.reference?.byteCount ?? 0 > min(asideBytesMax, settings.asideBytesMax),
                let life = directory.life(place), !life.isFrozenAtAdmission, isUnsavable(life)
            {
                say(.frozen(life.hasVoter ? .unconfirmed : .abandoned), of: aside.store)
            }
        }
        if kept.contains(where: { $0.failure == nil }) { reviewFloor(at: now, into: &effects) }
    }
}
