import ConfluxVocabulary

/// What keeps a nearly full log from having room.
public struct LogHold: Sendable, Hashable {
    /// What holds it.
    public enum Subject: Sendable, Hashable {
        /// The entries that a store needs.
        case store(StoreName)
        /// The entries that a start needs: those after the older of the last two checkpoints.
        case checkpoint
        /// No entry: whatever may be discarded is being discarded.
        case nothing
    }

    /// What holds it.
    public var subject: Subject
    /// The nodes for which the subject waits, by name if they have one.
    public var nodes: [String]
    /// Why, and what to do about it, for people.
    public var reason: String
    /// The lowest number in the log.
    public var floor: SequenceNumber
    /// The bytes of the entries in the log.
    public var retainedBytes: UInt64
    /// How much of the bound is used.
    public var space: LogSpace

    /// The same in one text.
    public var words: String {
        let held =
            switch subject {
            case .store(let name):
                "\(name) holds the log\(nodes.isEmpty ? "" : " (\(nodes.joined(separator: ", ")))"): \(reason)"
            case .checkpoint, .nothing: reason
            }
        return
            "it uses \(space.usedBytes) of \(space.limitBytes) bytes, \(retainedBytes) of them for "
            + "entries from \(floor) on. \(held)"
    }

    /// Whether the other one has the same cause.
    func isSame(as other: LogHold?) -> Bool {
        subject == other?.subject && reason == other?.reason && nodes == other?.nodes
    }
}

extension SequencerMachine {
    /// Reports what keeps the nearly full log from having room, whenever that is something else. If checkpoints do, asks
    /// for new ones, and again in each review: one may fail, or not be made.
    mutating func reviewHold(into effects: inout [SequencerEffect]) {
        let hold = hold
        if hold.subject == .checkpoint { effects.append(.makeRoom) }
        guard !hold.isSame(as: reportedHold) else { return }
        reportedHold = hold
        effects.append(.note(.logNearlyFull(hold)))
    }

    /// Says why a store holds a batch up.
    func words(holdingUp store: StoreName) -> String {
        if isLogNearlyFull { return nearlyFullWords }
        guard let life = directory.life(of: store) else {
            preconditionFailure("\(store) holds a batch up, and is not there")
        }
        if let rise = life.work.rise, rise.step.isHolding {
            return "\(store) is getting schema version \(rise.version)"
        }
        return "the log has little room, and \(store) gets no more of it before its next snapshot: "
            + reason(of: life, store).0
    }

    /// Says why the log admits no action, and no store.
    var nearlyFullWords: String { "the log is nearly full: \(holdWords)" }

    /// Says what keeps the log from having room.
    private var holdWords: String { (reportedHold ?? hold).words }

    /// What the sequencer knows of its log, its clock and its bounds.
    var health: SequencerHealth {
        var fullest = SessionLevels()
        for session in sessions.all { fullest.add(session.ledger) }
        let bounds = (ownBounds + bounds(of: fullest)).filter { $0.most > 0 }
            .sorted { Double($0.level) / Double($0.most) > Double($1.level) / Double($1.most) }
        return SequencerHealth(
            usedBytes: space.usedBytes, limitBytes: space.limitBytes, freeBytes: space.freeBytes,
            held: isLogNearlyFull ? holdWords : nil, isSlowed: admission.isSlow,
            isClockBehind: term.clock.isBehind,
            bounds: Array(bounds.prefix(SequencerHealth.boundsMax)))
    }

    /// What keeps the log from having room: whoever needs the lowest number in it.
    private var hold: LogHold {
        var hold = LogHold(
            subject: .nothing, nodes: [],
            reason: space.advice ?? "Entries that nobody needs are being discarded",
            floor: term.floor, retainedBytes: term.marks.byteCount(from: term.floor),
            space: space)
        let names = directory.lives.lives.keys.filter { lowestNeeded(by: $0) != nil }
        let first = names.min {
            (lowestNeeded(by: $0) ?? .zero, $0) < (lowestNeeded(by: $1) ?? .zero, $1)
        }
        let checkpoint = checkpoints.count == 2 ? checkpoints[0].next : SequenceNumber(1)
        let others = space.usedBytes - min(hold.retainedBytes, space.usedBytes)
        if space.advice == nil,
            LogSpace(usedBytes: others, of: space.limitBytes).room == .nearlyFull
        {
            hold.reason =
                "The other \(others) bytes alone are too many: snapshots, checkpoints, and what is kept aside. "
                + "Raise --log-limit, or drop stores"
        } else if let first, let needed = lowestNeeded(by: first), needed < checkpoint,
            needed <= term.floor, let life = directory.life(of: first)
        {
            hold.subject = .store(first)
            (hold.reason, hold.nodes) = reason(of: life, first)
        } else if checkpoint <= term.floor {
            hold.subject = .checkpoint
            hold.reason =
                "A start needs the entries after the older of the last two checkpoints, and the next one is due. "
                + "If this lasts, checkpointFailed says why"
        }
        return hold
    }

    /// Why a store's entries can't be discarded, what to do, and the nodes for which it waits.
    private func reason(of life: StoreLife, _ name: StoreName) -> (String, [String]) {
        let drop = "or discard it: conflux drop \(name)"
        if !life.hasVoter || life.record.isFrozen {
            let what = life.record.isFrozen ? "it is frozen" : "nobody hosts it"
            let why = life.work.asideFailure.map { " That failed: \($0)" } ?? ""
            let way =
                life.hasVoter ? "Thaw it once the cause is gone" : "Open it in a program"
            return ("\(what), so its entries are being kept aside.\(why) \(way), \(drop)", [])
        }
        if let upload = life.work.upload {
            let source = [self.name(of: upload.source.incarnation)]
            return (
                "its snapshot is being uploaded. If this lasts, stop that node, \(drop)", source
            )
        }
        if life.work.votes.isOpen, let awaited = life.work.votes.round?.awaited, !awaited.isEmpty {
            return (
                "it waits for nodes to say what state they have. If this lasts, stop those nodes, \(drop)",
                awaited.sorted().map { self.name(of: $0) }
            )
        }
        if let failure = life.work.snapshotFailure {
            return ("no snapshot of it can be taken: \(failure). Remove the cause, \(drop)", [])
        }
        return ("its next snapshot is due. If this lasts, snapshotFailed says why", [])
    }

    private func name(of incarnation: Incarnation) -> String {
        sessions[incarnation]?.name?.text ?? "node \(incarnation)"
    }
}
