extension SequencerMachine {
    /// Everything that could grow, and how far it may.
    package var bounds: [Bound] {
        let newcomers = joining.keys.filter { sessions.incarnation(of: $0) == nil }.count
        var bounds = [
            Bound("sessionsMax", sessions.lastingCount + newcomers, of: settings.sessionsMax),
            Bound("observersMax", connections.observerCount, of: settings.observersMax),
            Bound(
                "storesMax", directory.stores.count + creating.count, of: settings.storesMax),
            Bound(
                "initialStatesBytesMax", directory.initialBytes,
                of: settings.initialStatesBytesMax),
            Bound("questionsMax", questions.count, of: settings.questionsMax),
            Bound("barriersMax", barriers.count, of: settings.barriersMax),
            Bound("fetchesMax", fetchCount, of: settings.fetchesMax),
            // What is admitted in pieces repeats its table, and the sequencer's own entries come
            // on top: both have bounds of their own.
            Bound(
                "commitBytesMax", pipeline.gatheringBytes,
                of: Int(settings.commitBytesMax) + Self.tablesBytesMax + (1 << 20)),
            Bound("nameInquiries", nameInquiries.count, of: settings.sessionsMax),
            Bound("keyInquiries", keyInquiries.count, of: settings.sessionsMax),
            Bound("statesMax", directory.stateCount, of: settings.statesMax),
            Bound("waitingNamesMax", waitingNames, of: Self.waitingNamesMax),
            Bound("uploadsMax", uploads.activeCount, of: settings.uploadsMax),
            Bound("uploads", uploads.count, of: directory.stores.count),
            Bound("rounds", digests.count, of: directory.stores.count),
            Bound("upgrading", upgrading.count, of: directory.stores.count),
            Bound(
                "points", points.due.union(points.admitted).count,
                of: directory.stores.count + dropping.count + PointSchedule.perCommitMax),
            Bound("skipsMax", directory.skips.count, of: StoreDirectory.skipsMax),
            Bound(
                "decisions", decisions.count, of: settings.storesMax + StoreDirectory.skipsMax),
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
