extension SequencerMachine {
    /// The current level and the limit of everything that could grow.
    package var bounds: [Bound] {
        sessions.all.reduce(into: ownBounds) { bounds, session in
            var levels = SessionLevels()
            levels.add(session.ledger)
            bounds += self.bounds(of: levels)
        }
    }

    /// The bounds that hold for each session.
    func bounds(of levels: SessionLevels) -> [Bound] {
        [
            Bound(
                "windowBytes", levels.pendingBytes,
                of: Int(settings.windowBytes) + Self.tablesBytesMax),
            Bound(
                "unsettledOutcomesMax", levels.recordCount,
                of: settings.unsettledOutcomesMax + 2 * Self.piecesMax),
        ]
    }

    /// The bounds that exist once in a sequencer.
    var ownBounds: [Bound] {
        let newcomers = joining.keys.filter { sessions.incarnation(of: $0) == nil }.count
        return [
            Bound("sessionsMax", sessions.lastingCount + newcomers, of: settings.sessionsMax),
            Bound("observersMax", connections.observers.total, of: settings.observersMax),
            Bound("storesMax", directory.storeCount, of: settings.storesMax),
            Bound(
                "initialStatesBytesMax", directory.initialBytes.total,
                of: settings.initialStatesBytesMax),
            Bound("questionsMax", questions.count, of: settings.questionsMax),
            Bound("barriersMax", confirmations.barrierCount, of: settings.barriersMax),
            Bound("readsMax", reads.underWay, of: settings.readsMax),
            Bound("damagesMax", damages.count, of: Self.damagesMax),
            Bound("perConnectionMax", reads.longest, of: ReadQueue.perConnectionMax),
            // A batch that is admitted in pieces repeats its table, and the sequencer adds entries
            // of its own. Both have bounds of their own.
            Bound(
                "commitBytesMax", pipeline.gatheringBytes,
                of: Int(settings.commitBytesMax) + Self.tablesBytesMax + (1 << 20)),
            Bound("inquiries", inquiries.count, of: 2 * settings.sessionsMax),
            Bound("statesMax", directory.states.count, of: settings.statesMax),
            Bound("waitingNamesMax", waitingNames.total, of: Self.waitingNamesMax),
            Bound("uploadsMax", directory.lives.activeCount, of: settings.uploadsMax),
            Bound("skipsMax", directory.skips.count, of: SkipTable.countMax),
            Bound("claimsMax", leases.counts.total, of: LeaseTable.countMax),
            Bound("timersMax", timers.counts.total, of: TimerTable.countMax),
            Bound("timersBytesMax", timers.bytes.total, of: TimerTable.bytesMax),
            Bound("marks", term.marks.marks.count, of: LogMarks.countMax),
            Bound("claims", term.claims.claims.count, of: ClaimTable.countMax),
            Bound(
                "connections", connections.all.count,
                of: settings.sessionsMax + settings.observersMax),
        ]
    }
}

/// The highest levels among some sessions.
struct SessionLevels {
    private(set) var pendingBytes = 0
    private(set) var recordCount = 0

    mutating func add(_ ledger: OutcomeLedger) {
        pendingBytes = max(pendingBytes, ledger.pendingBytes)
        recordCount = max(recordCount, ledger.recordCount)
    }
}
