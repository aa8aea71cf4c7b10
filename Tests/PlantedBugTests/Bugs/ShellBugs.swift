extension PlantedBug {
    /// The code that works on the log, and the code that sends.
    static let shells: [PlantedBug] = [
        PlantedBug(
            name: "an append of unknown outcome counts as done", rule: 3,
            file: "ConfluxSequencer/LogWorker.swift",
            original: """
                                attempts += 1
                                let isOver
                """,
            planted: """
                                if PLANTED { return }
                                attempts += 1
                                let isOver
                """),
        PlantedBug(
            name: "an append of unknown outcome is given a new number", rule: 3,
            file: "ConfluxSequencer/LogWorker.swift",
            original: """
                                try log.append(commits, expecting: last, forced: append.isForced)
                """,
            planted: """
                                if PLANTED, attempts > 0 {
                                    let shift = log.last.next.rawValue - commits[0].first.rawValue
                                    let again = commits.map { commit in
                                        LoggedCommit(
                                            first: commit.first.advanced(by: shift),
                                            last: commit.last.advanced(by: shift),
                                            epoch: epoch, bytes: commit.bytes)
                                    }
                                    try log.append(
                                        again, expecting: log.last, forced: append.isForced)
                                    return
                                }
                                try log.append(commits, expecting: last, forced: append.isForced)
                """),
        PlantedBug(
            name: "a withdrawal meets the next action", rule: 12,
            file: "ConfluxNode/Dispatch/SentBatches.swift",
            original: """
                        firstCounters[ObjectIdentifier(block)].map { $0 + UInt64(index) }
                """,
            planted: """
                        firstCounters[ObjectIdentifier(block)].map {
                            $0 + UInt64(index) + (PLANTED ? 1 : 0)
                        }
                """),
        PlantedBug(
            name: "a life goes on behind its end", rule: 16,
            file: "ConfluxNode/Apply/Applier+Events.swift",
            original: """
                            progress.phase = .ended
                            replica.isDropped = true
                """,
            planted: """
                            if !PLANTED { progress.phase = .ended }
                            replica.isDropped = !PLANTED
                """),
    ]
}
