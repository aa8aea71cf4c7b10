extension SequencerMachine {
    /// Everything that could grow, and how far it may.
    package var bounds: [Bound] {
        let newcomers = joining.keys.filter { sessions.incarnation(of: $0) == nil }.count
        var bounds = [
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
        for session in sessions.all {
            bounds.append(
                Bound(
                    "windowBytes", session.ledger.pendingBytes,
                    of: Int(settings.windowBytes) + Self.tablesBytesMax))
            bounds.append(
                Bound(
                    "unsettledOutcomesMax", session.ledger.recordCount,
                    of: settings.unsettledOutcomesMax + 2 * Self.piecesMax))
        }
        return bounds
    }
}
