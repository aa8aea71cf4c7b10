import ConfluxLog
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// Snapshots and the floor, as they are looked at from outside (rules 18 to 20).
extension SimulatedCluster {
    // MARK: Snapshots

    /// The part of an encoding that a node gives; now and then another one.
    func part(_ request: SnapshotRequest, of node: SimulatedNode) -> SnapshotChunk {
        var chunk = node.shelf.part(request)
        if !chunk.bytes.isEmpty, strikes(plan.badPart) {
            var bytes = Array(chunk.bytes)
            bytes[random.int(in: 0...bytes.count - 1)] ^= 1
            chunk.bytes = bytes[...]
        }
        return chunk
    }

    /// A sequencer hears a node.
    func hear(_ message: NodeMessage, from connection: ConnectionID) {
        if case .hello(let hello) = message {
            named[connection.rawValue] = hello.session
            greeted.insert(connection.rawValue)
        }
        guard let incarnation = speaker(on: connection) else { return }
        switch message {
        case .open(let open): closed[incarnation]?.remove(open.subject)
        case .close(let close): closed[incarnation, default: []].insert(close.subject)
        default: break
        }
    }

    func speaker(on connection: ConnectionID) -> Incarnation? {
        guard greeted.contains(connection.rawValue) else { return nil }
        return connections[connection.rawValue]?.node.machine.incarnation
    }

    /// A sequencer has heard a vote, and did not send its node back to say hello first.
    func count(
        _ vote: Vote, from connection: ConnectionID, _ sequencer: SimulatedSequencer
    ) {
        guard let incarnation = speaker(on: connection), sequencer.machine.epoch == disk.epoch,
            // What it hosts no longer it has no voice in.
            closed[incarnation]?.contains(.store(vote.place.store)) != true
        else { return }
        truth.snapshots.hear(vote, of: incarnation)
        if let at = pointAt[vote.place], now > at + plan.keeping.votePatience {
            marks.hit(.lateVote)
        }
    }

    func noteRequest(_ request: SnapshotRequest, to connection: UInt64) {
        if request.offset > 0, let former = asked[request.place], former != connection {
            marks.hit(.uploadHandedOver)
        }
        asked[request.place] = connection
    }

    /// The number of the snapshot that openers of a store begin with.
    private func base(
        of history: StoreHistory, in list: [SavedSnapshot]? = nil
    ) -> SequenceNumber {
        (list ?? disk.shelves.snapshots.listed(through: disk.last)).last { snapshot in
            snapshot.store == history.name && snapshot.life == history.life
                && snapshot.kind == .confirmed
                && history.takes(version: snapshot.schemaVersion, at: snapshot.sequence)
        }?.sequence ?? history.life
    }

    /// Up to which number what concerns a store is kept beside the log.
    private func keptAside(of history: StoreHistory) -> SequenceNumber {
        disk.shelves.snapshots.listed(through: disk.last).last { snapshot in
            snapshot.store == history.name && snapshot.life == history.life
                && snapshot.kind == .aside
        }?.sequence ?? .zero
    }

    // MARK: The floor

    /// What is given up must be needed by nobody (rule 20).
    func checkFloor(
        _ floor: SequenceNumber, _ sequencer: SimulatedSequencer
    ) throws(Violation) {
        // Who is superseded gives up nothing.
        guard sequencer.machine.epoch == disk.epoch else { return }
        guard floor <= disk.last else {
            throw Violation(promise: "floor", message: "\(floor) is above the end, \(disk.last)")
        }
        guard disk.shelves.checkpoints.permits(floor) else {
            throw Violation(
                promise: "floor", message: "\(floor) is above the older of two checkpoints")
        }
        for history in truth.branch.presentLives { try checkNeed(of: history, floor) }
        disk.orderedFloor = max(disk.orderedFloor, floor)
    }

    /// What an opener of the store needs is there: its snapshot, and all that concerns it behind that.
    private func checkNeed(
        of history: StoreHistory, _ floor: SequenceNumber
    ) throws(Violation) {
        let base = max(base(of: history), keptAside(of: history))
        guard !isHeldOff(history) else { return }
        guard let need = history.firstNeed(behind: base), need < floor else { return }
        throw Violation(
            promise: "floor",
            message: "\(floor) is above \(need), which \(history.name) needs: its snapshot is at "
                + "\(base)")
    }

    /// The same for a store of which something has just been saved.
    func checkNeed(of store: StoreName) throws(Violation) {
        guard let history = truth.branch.presentLife(store) else { return }
        let base = base(of: history)
        // Whether what is given up behind it concerned the store is more than a sequencer knows.
        if base >= neededAtReading(of: history),
            base.next >= disk.orderedFloor || history.firstNeed(behind: base) == nil
        {
            disk.whole.insert(store)
        }
        try checkNeed(of: history, disk.shelves.floor)
    }

    /// What is migrated is the newest snapshot, behind which all is there (rule 17).
    func checkUpgrade(
        of store: StoreName, life: SequenceNumber, from base: SequenceNumber
    ) throws(Violation) {
        let newest =
            disk.shelves.snapshots.listed(through: disk.last).last { snapshot in
                snapshot.store == store && snapshot.life == life && snapshot.kind == .confirmed
            }?.sequence ?? life
        guard base == newest else {
            throw Violation(
                promise: "snapshot",
                message: "\(store) is upgraded from \(base), and its snapshot is at \(newest)")
        }
    }

    /// Whether a snapshot of the store is lost without which nobody can begin it, and none has taken its
    /// place.
    private func isHeldOff(_ history: StoreHistory) -> Bool {
        guard disk.unlisted.contains(history.name), !disk.whole.contains(history.name) else {
            return false
        }
        let base = base(of: history, in: disk.reading.list)
        return base < neededAtReading(of: history)
            && history.firstNeed(behind: base).map { $0 <= disk.reading.last } ?? false
    }

    /// Up to which number a snapshot had to reach when the list was read.
    private func neededAtReading(of history: StoreHistory) -> SequenceNumber {
        max(SequenceNumber(disk.reading.floor.rawValue - 1), history.migratedFrom ?? .zero)
    }

    // MARK: Liveness

    private func hosts(of history: StoreHistory) -> [SimulatedNode] {
        nodes.values.filter { node in
            guard let store = node.store(history.name), store.schemaVersion == history.version,
                let place = node.applier.place(of: history.name)
            else { return false }
            return place.isAttached && place.life == history.life && place.stopped == nil
        }
    }

    /// Whether no snapshot may come that gets a replica on: a store that is frozen has no digest point,
    /// where the others differ none may have a majority, and where the log has lost what a replica
    /// could begin with, and no other continues, nobody has one to give.
    private func mayStayStopped(_ store: StoreName) -> Bool {
        guard let history = truth.branch.presentLife(store) else { return false }
        return history.isFrozen || isDivided(history)
            || hosts(of: history).isEmpty && isHeldOff(history)
    }

    /// Whether the replicas of a store have different states, and none of these a majority.
    private func isDivided(_ history: StoreHistory) -> Bool {
        let hosts = hosts(of: history)
        let digests = Dictionary(
            grouping: hosts.compactMap { node in
                node.store(history.name).map { Digest(of: $0.encoded) }
            }, by: { $0 }
        ).mapValues(\.count)
        return !hosts.isEmpty && !digests.values.contains { $0 * 2 > hosts.count }
    }

    /// Whether a node has room for what it is asked for: the encodings of its stores at their last two
    /// points. In less than that one may give way before it was asked for in full.
    private func canGive(_ node: SimulatedNode) -> Bool {
        node.stores.reduce(0) { $0 + 2 * $1.encoded.count } <= plan.keeping.encodingsBytesMax
    }

    /// What comes about while there are entries, and is still missing, in words.
    var whatTakesEntries: String? {
        guard server?.isServing == true else { return "no sequencer serves" }
        let nodes = nodes.values.sorted { $0.slot < $1.slot }
        // What is asked below can be told of stores that have done what they were given.
        if let busy = nodes.first(where: { !$0.late.isIdle }) {
            return "stores of \(busy.text) have something to do"
        }
        for node in nodes {
            for store in node.stores
            where node.applier.place(of: store.name)?.stopped != nil
                && !mayStayStopped(store.name)
            {
                return "\(store.name) has stopped on \(node.text)"
            }
        }
        var mayKeepLog = false
        for history in truth.branch.presentLives {
            let hosts = hosts(of: history)
            if hosts.isEmpty || history.isFrozen || isDivided(history)
                || !hosts.contains(where: canGive)
            {
                mayKeepLog = true
                continue
            }
            if hosts.contains(where: { $0.spoilt.contains(history.name) }) {
                guard !hosts.allSatisfy({ $0.spoilt.contains(history.name) }) else {
                    mayKeepLog = true
                    continue
                }
                return "replicas of \(history.name) differ, and a majority has one state"
            }
            let behind = history.byteCount(behind: base(of: history))
            let state = hosts.first?.store(history.name)?.encoded.count ?? 0
            let most = plan.keeping.snapshotBytesMin + 4 * max(plan.keeping.digestBytesMin, state)
            if behind > most + 4_000 {
                return "\(history.name) has \(behind) bytes behind its snapshot at "
                    + "\(base(of: history))"
            }
        }
        return mayKeepLog ? nil : whatIsKeptTooLong
    }

    private var whatIsKeptTooLong: String? {
        let floor = disk.shelves.floor
        // Whole commits are given up, and the ends of small ones are no places to cut at: the first
        // place may have anything in front of it.
        var kept = 0
        var uncut = 0
        for commit in disk.commits where commit.first >= floor {
            if uncut < 1 << 10 {
                uncut += commit.bytes.count
            } else {
                kept += commit.bytes.count
            }
        }
        let checkpoint =
            disk.shelves.checkpoints.newest(through: disk.last)?.bytes.count ?? 0
        let most =
            plan.keeping.retainedBytesMax
            + 4 * max(plan.keeping.checkpointBytes, checkpoint) + 12_000
        return kept > most ? "the log keeps \(kept) bytes from \(floor) on" : nil
    }
}
