import ConfluxVocabulary

@testable import ConfluxProtocol

/// A deliberately dumb log, and what must hold of everything that a sequencer puts into one.
struct WrittenLog {
    let id: LogID = Identifier(high: 7, low: 1)
    var epoch = Epoch.none
    private(set) var bodies: [Bytes] = []
    private(set) var last = SequenceNumber.zero
    private(set) var lastEpoch = Epoch.none
    private var lastTimestamp = Timestamp(0)
    /// Where each origin's actions stand, by counter, and the epoch of their commits.
    private(set) var places: [Incarnation: [UInt64: SequenceNumber]] = [:]
    /// The highest counter of each session that is remembered.
    private(set) var counters: [Incarnation: UInt64] = [:]
    /// The lives of stores.
    private(set) var lives: [StoreName: SequenceNumber] = [:]
    /// What was written beside the log, ascending.
    private var checkpoints: [(last: SequenceNumber, bytes: Bytes)] = []
    private var fold = LogFold(log: Identifier(high: 7, low: 1))

    /// Rules 1, 2, 8, 9, 13, 15 and 16, as a reader of the log sees them.
    mutating func append(_ append: Append) {
        let frame = append.frame
        require(frame.count <= WireLimits.standard.frameBytesMax, "\(frame.count) bytes")
        let commit = certain { try Commit.decode(body: frame.dropFirst(Frame.size)) }
        require(commit.log == id && commit.epoch == epoch, "of another tenure: \(commit)")
        require(commit.predecessor == lastEpoch, "does not follow \(lastEpoch): \(commit)")
        require(commit.first == last.next, "\(commit.first) does not follow \(last)")
        require(commit.first == append.first && commit.last == append.last, "\(append)")
        require(commit.timestamp >= lastTimestamp, "time went back to \(commit.timestamp)")
        var sequence = commit.first
        for block in commit.blocks {
            switch block {
            case .batch(let incarnation, let batch): put(batch, of: incarnation, at: sequence)
            case .event(let event): put(event, at: sequence)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        bodies.append(frame.dropFirst(Frame.size))
        last = commit.last
        lastEpoch = commit.epoch
        lastTimestamp = commit.timestamp
        check(commit)
    }

    /// Rule 20: a checkpoint is the fold of the log, and reads back as what it was.
    private mutating func check(_ commit: Commit) {
        do { try fold.apply(commit) } catch { fail("the log does not follow itself: \(error)") }
        let bytes = Bytes(fold.encoded())
        require(certain { try LogFold(checkpoint: bytes) } == fold, "a fold reads back otherwise")
        guard bodies.count.isMultiple(of: 4) else { return }
        checkpoints.append((commit.last, bytes))
    }

    /// What is found beside the log: the newest checkpoint, an old one, a broken one or none.
    func checkpoint(through last: SequenceNumber, _ dice: inout Dice) -> CheckpointAnswer {
        guard let newest = checkpoints.last(where: { $0.last <= last }) else { return .none }
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
        // A row may have no entry, when its entries were rejected: only the others count.
        batch.forEachEntry { index, _ in
            let row = batch.targets[index]
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
        case .left(let incarnation):
            require(counters[incarnation] != nil, "\(incarnation) left, and was forgotten")
        case .forgotten(let incarnation):
            require(
                counters.removeValue(forKey: incarnation) != nil, "\(incarnation) forgotten twice")
        case .created(let name, _, _):
            require(lives[name] == nil, "\(name) was created twice")
            lives[name] = sequence
        case .dropped(let name, let life):
            require(lives[name] == life, "\(life) of \(name) ended, which is not its present life")
            lives[name] = nil
        }
    }

    /// What a receipt says must stand here, and stand where it says.
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
