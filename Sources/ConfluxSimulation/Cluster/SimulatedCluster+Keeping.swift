import ConfluxLog
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// Checks of snapshots and the floor, from outside (rules 18 to 20).
extension SimulatedCluster {
    // MARK: Snapshots

    /// The part of an encoding that a node sends; now and then a wrong one.
    func part(_ request: SnapshotRequest, of node: SimulatedNode) -> SnapshotChunk {
        var chunk = node.shelf.part(request)
        if !chunk.bytes.isEmpty, strikes(plan.badPart) {
            var bytes = Array(chunk.bytes)
            bytes[random.int(in: 0...bytes.count - 1)] ^= 1
            chunk.bytes = bytes[...]
        }
        return chunk
    }

    /// A sequencer receives a node's message.
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

    /// A sequencer has received a vote, and has not asked its node to say hello first.
    func count(
        _ vote: Vote, from connection: ConnectionID, _ sequencer: SimulatedSequencer
    ) {
        guard let incarnation = speaker(on: connection), sequencer.machine.epoch == disk.epoch,
            // A node has no vote on stores that it no longer hosts.
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

    /// The number up to which entries that concern the store are kept aside.
    private func keptAside(of history: StoreHistory) -> SequenceNumber {
        disk.shelves.snapshots.listed(through: disk.last).last { snapshot in
            snapshot.store == history.name && snapshot.life == history.life
                && snapshot.kind == .aside
        }?.sequence ?? .zero
    }

    // MARK: The floor

    /// Checks that nobody needs what is discarded (rule 20).
    func checkFloor(
        _ floor: SequenceNumber, _ sequencer: SimulatedSequencer
    ) throws(Violation) {
        // A superseded sequencer discards nothing, and a floor that stays discards no entries.
        guard sequencer.machine.epoch == disk.epoch, floor > disk.shelves.floor else { return }
        try require(floor <= disk.last, "floor", "\(floor) is above the end, \(disk.last)")
        try require(
            disk.shelves.checkpoints.permits(floor), "floor",
            "\(floor) is above the older of two checkpoints")
        for history in truth.branch.presentLives { try checkNeed(of: history, floor) }
        disk.orderedFloor = max(disk.orderedFloor, floor)
    }

    /// Checks that an opener of the store finds what it needs: its snapshot, and all later entries that
    /// concern it.
    private func checkNeed(
        of history: StoreHistory, _ floor: SequenceNumber
    ) throws(Violation) {
        let base = base(of: history)
        guard !isHeldOff(history),
            let need = history.firstNeed(after: base, aside: keptAside(of: history)), need < floor
        else { return }
        throw Violation(
            "floor",
            "\(floor) is above \(need), which \(history.name) needs: its snapshot is at "
                + "\(base)")
    }

    /// The same for a store of which something has just been saved.
    func checkNeed(of store: StoreName) throws(Violation) {
        guard let history = truth.branch.presentLife(store) else { return }
        let base = base(of: history)
        // A sequencer does not know whether entries discarded after the snapshot concerned the store.
        if base >= neededAtReading(of: history),
            base.next >= disk.orderedFloor || history.firstNeed(behind: base) == nil
        {
            disk.whole.insert(store)
        }
        try checkNeed(of: history, disk.shelves.floor)
    }

    /// Checks that an upgrade migrates the newest snapshot, after which all entries exist (rule 17).
    func checkUpgrade(
        of store: StoreName, life: SequenceNumber, from base: SequenceNumber
    ) throws(Violation) {
        let newest =
            disk.shelves.snapshots.listed(through: disk.last).last { snapshot in
                snapshot.store == store && snapshot.life == life && snapshot.kind == .confirmed
            }?.sequence ?? life
        try require(
            base == newest, "snapshot",
            "\(store) is upgraded from \(base), and its snapshot is at \(newest)")
    }

    /// Whether a snapshot is lost that is needed to begin the store, and none has replaced it.
    private func isHeldOff(_ history: StoreHistory) -> Bool {
        guard disk.unlisted.contains(history.name), !disk.whole.contains(history.name) else {
            return false
        }
        let base = base(of: history, in: disk.reading.list)
        return base < neededAtReading(of: history)
            && history.firstNeed(behind: base).map { $0 <= disk.reading.last } ?? false
    }

    /// The number that a snapshot had to reach when the list was read.
    private func neededAtReading(of history: StoreHistory) -> SequenceNumber {
        max(SequenceNumber(disk.reading.floor.rawValue - 1), history.migratedFrom ?? .zero)
    }

    // MARK: Liveness

    private func hosts(of history: StoreHistory) -> [SimulatedNode] {
        nodes.values.filter { node in
            guard let store = node.store(history.name), store.schemaVersion == history.version,
                let place = node.applier.place(of: history.name)
            else { return false }
            return place.hasCaughtUp && place.life == history.life && place.stopped == nil
        }
    }

    /// Whether a stopped replica may never get a snapshot. A frozen store has no digest point. If the
    /// replicas differ, there may be no majority. And if the log has lost the state that a replica could
    /// begin with, and no other replica continues, no snapshot can be made.
    private func mayStayStopped(_ store: StoreName) -> Bool {
        guard let history = truth.branch.presentLife(store) else { return false }
        return history.isFrozen || isDivided(history)
            || hosts(of: history).isEmpty && isHeldOff(history)
    }

    /// Whether the replicas of a store have different states, and none of these has a majority.
    private func isDivided(_ history: StoreHistory) -> Bool {
        let hosts = hosts(of: history)
        let digests = Dictionary(
            grouping: hosts.compactMap { node in
                node.store(history.name).map { Digest(of: $0.encoded) }
            }, by: { $0 }
        ).mapValues(\.count)
        return !hosts.isEmpty && !digests.values.contains { $0 * 2 > hosts.count }
    }

    /// Whether a node has room for the encodings of its stores at their last two points. With less room, an
    /// encoding may be dropped before it was sent completely.
    private func canGive(_ node: SimulatedNode) -> Bool {
        node.stores.reduce(0) { $0 + 2 * $1.encoded.count } <= plan.keeping.encodingsBytesMax
    }

    /// Describes what has not happened yet and needs further entries; nil if nothing is missing.
    var whatTakesEntries: String? {
        guard server?.isServing == true else { return "no sequencer serves" }
        if let whatFillsLog { return whatFillsLog }
        let nodes = nodes.values.sorted { $0.slot < $1.slot }
        // The checks below only hold for stores that have done their work.
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
            if let late = whatIsNotUpgraded(history) { return late }
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
                guard isDriven(history.name.state) else {
                    // Nobody knows when the program dispatches the next one.
                    mayKeepLog = true
                    continue
                }
                return "\(history.name) has \(behind) bytes behind its snapshot at "
                    + "\(base(of: history))"
            }
        }
        return mayKeepLog ? nil : whatIsKeptTooLong
    }

    private var whatIsKeptTooLong: String? {
        let floor = disk.shelves.floor
        // Only complete commits are discarded, and not between small ones. So there may be up to this much
        // before the first possible floor.
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
