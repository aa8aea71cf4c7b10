import ConfluxHashing
import ConfluxVocabulary

@testable import ConfluxProtocol

/// A deliberately simple log, which checks everything that a sequencer writes into it.
struct WrittenLog {
    let id: LogID = Identifier(high: 7, low: 1)
    var epoch = Epoch.none
    private(set) var bodies: [Bytes] = []
    private(set) var last = SequenceNumber.zero
    private(set) var lastEpoch = Epoch.none
    private var lastTimestamp = Timestamp(0)
    /// For each origin's actions, the numbers by counter.
    private(set) var places: [Incarnation: [UInt64: SequenceNumber]] = [:]
    /// The highest counter of each remembered session.
    private(set) var counters: [Incarnation: UInt64] = [:]
    /// The lives of stores.
    private(set) var lives: [StoreName: SequenceNumber] = [:]
    /// The lowest number that the log promises to have.
    private(set) var floor = SequenceNumber(1)
    /// The complete snapshots that are confirmed. `unfinished` has the incomplete ones.
    private(set) var snapshots: [SnapshotPlace: (reference: SnapshotReference, bytes: [UInt8])] =
        [:]
    /// The entries that are kept aside for stores that nobody hosts.
    private(set) var asides: [StoreName: AsideKept] = [:]
    private var unfinished: [StoreName: (part: SnapshotPart, bytes: [UInt8])] = [:]
    /// The highest number of an entry that concerns each store. `frozen` has the frozen stores.
    private(set) var stamps: [StoreName: SequenceNumber] = [:]
    private var frozen: Set<StoreName> = []
    /// The last two checkpoints that the sequencer was told of in this term.
    var toldCheckpoints: [SequenceNumber] = []
    /// The checkpoints in ascending order.
    private var checkpoints: [(last: SequenceNumber, bytes: Bytes)] = []
    private var logState = LogState(log: Identifier(high: 7, low: 1))

    /// Checks rules 1, 2, 8, 9, 13, 15 and 16, as a reader of the log sees them.
    mutating func append(_ append: Append) {
        var hasPoint = false
        for commit in append.commits { add(commit, &hasPoint) }
    }

    private mutating func add(_ added: Append.Commit, _ hasPoint: inout Bool) {
        let frame = added.frame
        require(frame.count <= WireLimits.standard.frameBytesMax, "\(frame.count) bytes")
        let commit = certain { try Commit.decode(body: frame.dropFirst(Frame.size)) }
        require(commit.log == id && commit.epoch == epoch, "of another term: \(commit)")
        require(commit.predecessor == lastEpoch, "does not follow \(lastEpoch): \(commit)")
        require(commit.first == last.next, "\(commit.first) does not follow \(last)")
        require(commit.first == added.first && commit.last == added.last, "\(added)")
        require(commit.timestamp >= lastTimestamp, "time went back to \(commit.timestamp)")
        var sequence = commit.first
        for block in commit.blocks {
            if case .event(.digestPoint, _) = block { hasPoint = true }
            if case .batch = block {
                require(!hasPoint, "a batch behind a digest point: \(commit)")
            }
            switch block {
            case .batch(let incarnation, let batch): put(batch, of: incarnation, at: sequence)
            case .event(let event, _): put(event, at: sequence)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        bodies.append(frame.dropFirst(Frame.size))
        last = commit.last
        lastEpoch = commit.epoch
        lastTimestamp = commit.timestamp
        check(commit)
    }

    /// Checks rule 20: a checkpoint is the state of the log, and decodes to the same.
    private mutating func check(_ commit: Commit) {
        do { try logState.apply(commit, byteCount: bodies.last?.count ?? 0) } catch {
            fail("the log does not follow itself: \(error)")
        }
        let bytes = Bytes(logState.encoded())
        require(
            certain { try LogState(checkpoint: bytes) } == logState,
            "a logState reads back otherwise")
        guard bodies.count.isMultiple(of: 4) else { return }
        checkpoints.append((commit.last, bytes))
    }

    /// Saves a checkpoint at the end of the log.
    mutating func saveCheckpoint() -> SequenceNumber {
        if checkpoints.last?.last != last { checkpoints.append((last, Bytes(logState.encoded()))) }
        toldCheckpoints = toldCheckpoints.suffix(1) + [last]
        return last
    }

    /// Checks rule 20: no entry is discarded that somebody needs.
    mutating func truncate(below floor: SequenceNumber, bases: [StoreName: SequenceNumber]) {
        require(floor > self.floor, "the floor went from \(self.floor) to \(floor)")
        let older = toldCheckpoints.first ?? .zero
        require(
            floor <= older.next, "a floor of \(floor), and checkpoints at \(toldCheckpoints)")
        for (name, life) in lives {
            let base = bases[name] ?? life
            let isSaved = snapshots.keys.contains { $0.store == name && $0.sequence == base }
            require(base == life || isSaved, "\(name) begins at \(base), which is not saved")
            let aside = asides[name].flatMap { $0.life == life ? $0.through : nil } ?? .zero
            let kept = max(base, aside)
            require(
                stamps[name, default: life] <= kept || floor <= kept.next,
                "a floor of \(floor), and \(name) is kept up to \(kept)")
        }
        self.floor = floor
    }

    /// - Returns: Whether the part is the next one.
    mutating func save(_ part: SnapshotPart) -> Bool {
        let store = part.place.store
        require(part.place.sequence <= last, "a snapshot of what is to come: \(part.place)")
        var bytes: [UInt8] = []
        if part.offset > 0 {
            guard let former = unfinished[store], former.part.place == part.place,
                former.part.reference == part.reference,
                UInt64(former.bytes.count) == part.offset
            else { return false }
            bytes = former.bytes
        }
        bytes += part.bytes
        unfinished[store] = (part, bytes)
        require(UInt64(bytes.count) <= part.reference.byteCount, "too much of \(part.place)")
        guard UInt64(bytes.count) == part.reference.byteCount else { return true }
        require(Digest(of: bytes) == part.reference.digest, "another state than \(part.place)")
        unfinished[store] = nil
        if part.isConfirmed {
            snapshots[part.place] = (part.reference, bytes)
        } else {
            require(snapshots[part.place] == nil, "\(part.place) was confirmed, and is replaced")
        }
        return true
    }

    /// Keeps the entries that concern some stores aside from the log.
    mutating func keepAside(_ jobs: [AsideJob], through last: SequenceNumber) -> [AsideKept] {
        jobs.map { job in
            require(job.after < last, "nothing of \(job.store) is behind \(job.after)")
            var entries = AsideEntries(job.store, life: job.life, after: job.after)
            for body in bodies {
                let commit = certain { try Commit.decode(body: body) }
                if commit.first <= last { entries.add(commit) }
            }
            let isNone = entries.bytes.isEmpty && job.former == nil
            let kept = AsideKept(
                store: job.store, life: job.life, through: last,
                reference: isNone
                    ? nil
                    : SnapshotReference(
                        sequence: last, schemaVersion: 0, digest: Digest(of: entries.bytes),
                        byteCount: UInt64(max(entries.bytes.count, 1))))
            asides[job.store] = kept
            return kept
        }
    }

    /// The complete snapshots and the entries kept aside, as a start finds them.
    var index: [SnapshotIndexEntry] {
        let saved = snapshots.map {
            SnapshotIndexEntry(place: $0.key, reference: $0.value.reference)
        }
        let aside = asides.values.compactMap { kept in
            kept.reference.map { reference in
                SnapshotIndexEntry(
                    place: SnapshotPlace(
                        store: kept.store, life: kept.life, sequence: kept.through),
                    reference: reference, isAside: true)
            }
        }
        return (saved + aside).sorted {
            ($0.place.store, $0.place.sequence) < ($1.place.store, $1.place.sequence)
        }
    }

    mutating func removeSnapshots(of store: StoreName) {
        asides[store] = nil
        snapshots = snapshots.filter { $0.key.store != store }
        unfinished[store] = nil
    }

    mutating func beginTerm() {
        epoch = epoch.raised(by: 1)
        unfinished = [:]
        toldCheckpoints = []
    }

    func chunk(of place: SnapshotPlace, at offset: UInt64, limitBytes: Int) -> SnapshotChunk {
        guard let saved = snapshots[place], offset < UInt64(saved.bytes.count) else {
            return .none(of: place)
        }
        return SnapshotChunk(
            place: place, offset: offset, byteCount: saved.reference.byteCount,
            bytes: saved.bytes[Int(offset)...].prefix(max(1, limitBytes)))
    }

    /// The checkpoint that is found: the newest one, an old one, a damaged one or none.
    func checkpoint(through last: SequenceNumber, _ dice: inout Dice) -> CheckpointAnswer {
        guard let newest = checkpoints.last(where: { $0.last <= last }) else { return .none }
        guard floor == SequenceNumber(1) else {
            // One of the two checkpoints that the floor requires can be read.
            let isFirst = last == self.last && checkpoints.count > 1
            return isFirst && dice.below(4) == 0
                ? .damaged(newest.last, "not what was written") : .found(newest.last, newest.bytes)
        }
        switch dice.below(8) {
        case 0: return .none
        case 1: return .damaged(newest.last, "not what was written")
        case 2: return .unreadable("the folder is gone")
        case 3:
            let oldest = checkpoints[0]
            return .found(oldest.last, oldest.bytes)
        case 4: return .found(newest.last, newest.bytes.dropLast(1 + dice.below(8)))
        default: return .found(newest.last, newest.bytes)
        }
    }

    private mutating func put(
        _ batch: Batch, of incarnation: Incarnation, at sequence: SequenceNumber
    ) {
        require(!batch.isVoid, "a withdrawal is in the log: \(batch)")
        guard let highest = counters[incarnation] else {
            fail("a batch of \(incarnation), which no session has")
        }
        require(batch.firstCounter > highest, "\(batch.firstCounter) stands behind \(highest)")
        counters[incarnation] = batch.lastCounter
        // A row may have no entry if its entries were rejected. Then its target does not count.
        batch.forEachEntry { index, _ in
            let row = batch.targets[index]
            for name in lives.keys where row.target.concerns(name) {
                if case .store = row.target {} else if frozen.contains(name) { continue }
                stamps[name] = sequence.advanced(by: UInt64(batch.count) - 1)
            }
            guard case .store(let name) = row.target, row.life != .zero else { return }
            require(lives[name] == row.life, "an entry for life \(row.life) of \(name)")
        }
        for offset in 0..<UInt64(batch.count) {
            places[incarnation, default: [:]][batch.firstCounter + offset] =
                sequence.advanced(by: offset)
        }
    }

    private mutating func put(_ event: LogEvent, at sequence: SequenceNumber) {
        switch event {
        case .claim(let epoch, _): require(epoch == self.epoch, "a claim of \(epoch)")
        case .joined(_, _, .none, _): counters[Incarnation(sequence.rawValue)] = 0
        case .joined(_, _, let former, _):
            require(counters[former] != nil, "\(former) is back, and was forgotten")
        case .visited: require(false, "an entry of former programs")
        case .forked: require(false, "an entry that no sequencer makes")
        case .handles(let state, let events):
            require(!events.isEmpty, "\(state) handles no events")
        case .left(let incarnation):
            require(counters[incarnation] != nil, "\(incarnation) left, and was forgotten")
        case .forgotten(let incarnation):
            require(
                counters.removeValue(forKey: incarnation) != nil, "\(incarnation) forgotten twice")
        case .created(let name, _, _):
            require(lives[name] == nil, "\(name) was created twice")
            lives[name] = sequence
            stamps[name] = sequence
            frozen.remove(name)
        case .dropped(let name, let life):
            require(lives[name] == life, "\(life) of \(name) ended, which is not its present life")
            lives[name] = nil
        case .digestPoint(let name, let life):
            require(lives[name] == life && !frozen.contains(name), "a point of \(name) in \(life)")
        case .upgraded(let name, let life, _, let base, _):
            require(lives[name] == life && base < sequence, "\(name) upgraded from \(base)")
            stamps[name] = sequence
        case .frozen(let name, let life, _):
            require(lives[name] == life, "\(life) of \(name) was frozen")
            stamps[name] = sequence
            frozen.insert(name)
        case .thawed(let name, let life):
            require(lives[name] == life && frozen.contains(name), "\(name) was thawed")
            stamps[name] = sequence
            frozen.remove(name)
        case .skipped(let skipped, _):
            require(skipped < sequence && skipped >= floor, "\(skipped) was skipped")
        }
    }

    /// Checks that the log has the entries of some receipts at their numbers.
    func check(_ run: Receipts.Run, of incarnation: Incarnation) {
        for offset in 0..<UInt64(run.count) {
            let place = places[incarnation]?[run.firstCounter + offset]
            require(
                place == run.firstSequence.advanced(by: offset),
                "a receipt of \(run.firstCounter + offset) of \(incarnation) at "
                    + "\(run.firstSequence.advanced(by: offset)), which stands at \(place as Any)")
        }
    }
}
