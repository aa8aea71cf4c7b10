extension PlantedBug {
    private static let log = "ConfluxEtcd/EtcdLog.swift"

    /// Several sequencers that share a log: the fences between them.
    static let standbys: [PlantedBug] = [
        PlantedBug(
            name: "a term that was confirmed once is trusted for good", rule: 29,
            file: "ConfluxSequencer/LogWorker.swift",
            original: """
                        case .confirm:
                            try log.confirm()
                """,
            planted: """
                        case .confirm:
                            if !PLANTED { try log.confirm() }
                """,
            world: "standbys"),
        PlantedBug(
            name: "an answer to the term before is trusted", rule: 47,
            file: "ConfluxSequencer/Serving/TermGate.swift",
            original: """
                term == newest && !isStandingBy
                """,
            planted: """
                PLANTED || term == newest && !isStandingBy
                """,
            world: "standbys"),
        PlantedBug(
            name: "an append does not compare the claim", rule: 1, file: log,
            original: """
                                .value(layout.epoch, term.claim.value(at: layout.epoch)),
                                .value(layout.end, term.end.value(at: layout.end)),
                            ],
                """,
            planted: """
                                .value(layout.epoch, term.claim.value(at: layout.epoch)),
                                .value(layout.end, term.end.value(at: layout.end)),
                            ].suffix(PLANTED ? 1 : 2),
                """,
            world: "standbys"),
        PlantedBug(
            name: "an append does not compare the end of the log", rule: 1, file: log,
            original: """
                        let record = EtcdRecord(commits, behind: term.end.hash)
                        try writeParts(of: record, commits)
                        let end = EtcdEnd(last: record.last, epoch: record.epoch, hash: record.hash)
                        let value = record.value
                        let answer = try transact(
                            EtcdTransaction(
                                comparisons: [
                """,
            planted: """
                        let record = EtcdRecord(commits, behind: term.end.hash)
                        try writeParts(of: record, commits)
                        let end = EtcdEnd(last: record.last, epoch: record.epoch, hash: record.hash)
                        let value = record.value
                        let answer = try transact(
                            EtcdTransaction(
                                comparisons: PLANTED ? [
                                    .value(layout.epoch, term.claim.value(at: layout.epoch))
                                ] : [
                """,
            world: "standbys"),
        PlantedBug(
            name: "a claim does not compare the one before", rule: 1, file: log,
            original: """
                                comparisons: [.value(layout.epoch, value)],
                """,
            planted: """
                                comparisons: PLANTED ? [] : [.value(layout.epoch, value)],
                """,
            world: "standbys"),
        PlantedBug(
            name: "what lies beside the commits is changed without comparing", rule: 1, file: log,
            original: """
                                comparisons: [
                                    .value(layout.epoch, term.claim.value(at: layout.epoch)),
                                    .value(key, term.change.value(at: key)),
                                ], success: operations
                """,
            planted: """
                                comparisons: PLANTED ? [] : [
                                    .value(layout.epoch, term.claim.value(at: layout.epoch)),
                                    .value(key, term.change.value(at: key)),
                                ], success: operations
                """,
            world: "standbys"),
    ]
}
