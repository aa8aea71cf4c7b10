extension SequencerMachine {
    /// Everything that could grow, and how far it may.
    package var bounds: [Bound] {
        // It is full once there were enough visits, and says nothing to a monitor.
        let visits = Bound("visitsMax", sessions.visitCount, of: settings.visitsMax)
        return sessions.all.reduce(into: ownBounds + [visits]) { bounds, session in
            var levels = SessionLevels()
            levels.add(session.ledger)
            bounds += self.bounds(of: levels)
        }
    }

    /// What each session has.
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

    /// What there is once.
    var ownBounds: [Bound] {
        let newcomers = joining.keys.filter { sessions.incarnation(of: $0) == nil }.count
        return [
            Bound("sessionsMax", sessions.lastingCount + newcomers, of: settings.sessionsMax),
            Bound("observersMax", connections.observerCount, of: settings.observersMax),
            Bound("storesMax", directory.storeCount, of: settings.storesMax),
            Bound(
                "initialStatesBytesMax", directory.initialBytes,
                of: settings.initialStatesBytesMax),
            Bound("questionsMax", questions.count, of: settings.questionsMax),
            Bound("barriersMax", confirmations.barrierCount, of: settings.barriersMax),
            Bound("readsMax", reads.underWay, of: settings.readsMax),
            Bound("damagesMax", damages.count, of: Self.damagesMax),
            Bound("perConnectionMax", reads.longest, of: ReadQueue.perConnectionMax),
            // What is admitted in pieces repeats its table, and the sequencer's own entries come
            // on top: both have bounds of their own.
            Bound(
                "commitBytesMax", pipeline.gatheringBytes,
                of: Int(settings.commitBytesMax) + Self.tablesBytesMax + (1 << 20)),
            Bound("inquiries", inquiries.count, of: 2 * settings.sessionsMax),
            Bound("statesMax", directory.states.count, of: settings.statesMax),
            Bound("waitingNamesMax", waitingNames, of: Self.waitingNamesMax),
            Bound("uploadsMax", directory.lives.activeCount, of: settings.uploadsMax),
            Bound("skipsMax", directory.skips.count, of: SkipTable.countMax),
            Bound("marks", tenure.marks.marks.count, of: LogMarks.countMax),
            Bound("claims", tenure.claims.claims.count, of: ClaimTable.countMax),
            Bound(
                "connections", connections.all.count,
                of: settings.sessionsMax + settings.observersMax),
        ]
    }
}

/// How full what each session has is, of the fullest of some sessions.
struct SessionLevels {
    private(set) var pendingBytes = 0
    private(set) var recordCount = 0

    mutating func add(_ ledger: OutcomeLedger) {
        pendingBytes = max(pendingBytes, ledger.pendingBytes)
        recordCount = max(recordCount, ledger.recordCount)
    }
}
