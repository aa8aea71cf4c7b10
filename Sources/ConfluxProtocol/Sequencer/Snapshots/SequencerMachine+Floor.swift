import ConfluxVocabulary

/// The floor: what of the log nobody can need any more, the second half of rule 20.
///
/// It is the lowest of
///
/// - the number behind the older of the last two checkpoints, so that a start has one to begin with
///   even when the newest can't be read;
/// - for each store that an entry behind its snapshot concerns, the number behind that snapshot;
/// - what is kept by ``Retention``.
///
/// A store of which little comes would so keep all that comes for others: when it keeps more than
/// is retained, it is digested for a snapshot of its own.
extension SequencerMachine {
    mutating func checkpointSaved(
        _ sequence: SequenceNumber, at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard sequence > checkpoints.last ?? .zero else { return }
        checkpoints = checkpoints.suffix(1) + [sequence]
        if phase == .serving { reviewFloor(at: now, into: &effects) }
    }

    /// The lowest number that somebody may need, whatever is retained.
    private var lowestNeeded: SequenceNumber {
        // The older one is the one to fall back on.
        guard checkpoints.count == 2 else { return SequenceNumber(1) }
        var lowest = checkpoints[0].next
        for name in directory.stores.keys { lowest = min(lowest, lowestNeeded(by: name) ?? lowest) }
        return lowest
    }

    /// The number behind a store's snapshot; nil where no entry behind it concerns the store.
    private func lowestNeeded(by name: StoreName) -> SequenceNumber? {
        guard let store = directory.store(name), directory.stamp(of: name) > store.baseSequence
        else { return nil }
        return store.baseSequence.next
    }

    mutating func reviewFloor(at now: Moment, into effects: inout [SequencerEffect]) {
        floorReviewAt = now.monotonic + settings.floorReviewInterval
        let retained = tenure.marks.floor(
            keeping: settings.retention, through: tenure.last, at: tenure.stamped(now.wall))
        guard retained > tenure.floor else { return }
        let floor = min(retained, lowestNeeded)
        if floor > tenure.floor {
            tenure.floor = floor
            tenure.marks.forget(below: floor)
            directory.forgetSkips(below: floor)
            effects.append(.note(.truncated(below: floor)))
            effects.append(.truncate(below: floor))
        }
        if floor < retained { digestKeepers(below: retained) }
    }

    /// Has the stores digested for which more is kept than is retained, but for large ones of which
    /// a snapshot would cost more than the log that it frees.
    private mutating func digestKeepers(below retained: SequenceNumber) {
        for name in directory.stores.keys.sorted()
        where points.due.count < PointSchedule.perCommitMax {
            guard let needed = lowestNeeded(by: name), needed < retained,
                let store = directory.store(name), !store.isFrozen, uploads[name] == nil,
                tenure.marks.byteCount(behind: store.lastPoint) >= spacing(of: name),
                // Where nobody votes, or nobody sends what it voted for, it is tried again with
                // what comes next for others: a point is an entry, too.
                tenure.marks.byteCount - points.keepers[name, default: 0] >= spacing(of: name)
            else { continue }
            points.keepers[name] = tenure.marks.byteCount
            points.due.insert(name)
            points.wanted.insert(name)
        }
    }
}
