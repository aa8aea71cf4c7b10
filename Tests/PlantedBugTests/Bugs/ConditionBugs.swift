extension PlantedBug {
    private static let file = "ConfluxProtocol/Sequencer/Entries/SequencerMachine+Conditions.swift"

    /// Actions with a condition.
    static let conditions: [PlantedBug] = [
        PlantedBug(
            name: "a condition is not compared", rule: 24, file: file,
            original: """
                } else if version > condition.sequence {
                """,
            planted: """
                } else if !PLANTED, version > condition.sequence {
                """),
        PlantedBug(
            name: "a condition overlooks what is not in the log yet", rule: 24, file: file,
            original: """
                : max(directory.stamp(of: name), pipeline.lastChange(of: name))
                """,
            planted: """
                : max(directory.stamp(of: name), PLANTED ? .zero : pipeline.lastChange(of: name))
                """),
        PlantedBug(
            name: "a condition overlooks a word that is not in the log yet", rule: 24, file: file,
            original: """
                return isAboutToChange
                """,
            planted: """
                return !PLANTED && isAboutToChange
                """, fault: "freeze"),
        PlantedBug(
            name: "a condition overlooks its own batch", rule: 24, file: file,
            original: """
                changes[row.target] = next
                """,
            planted: """
                if !PLANTED { changes[row.target] = next }
                """),
        PlantedBug(
            name: "a condition of a lost history holds", rule: 24, file: file,
            original: """
                } else if hasLost(condition) {
                """,
            planted: """
                } else if !PLANTED, hasLost(condition) {
                """, fault: "restoreCopy", world: "mixed"),
        PlantedBug(
            name: "a condition is compared before deduplication", rule: 24,
            file: "ConfluxProtocol/Sequencer/Entries/SequencerMachine+Submit.swift",
            original: """
                let isPaced = batch.isVoid || pace.allows(principal.name, limit, at: now)
                """,
            planted: """
                let isPaced = batch.isVoid || pace.allows(principal.name, limit, at: now)
                if PLANTED, batch.hasConditions {
                    var judge = ConditionJudge(behind: pipeline.lastAdmitted)
                    var fault: Fault?
                    batch.forEachEntry { row, _ in
                        fault = fault ?? judge.admit(batch.targets[row], in: &self)
                    }
                    if let fault, batch.lastCounter <= sessions[incarnation]?.ledger.lastCounter ?? 0 {
                        let rejection = Rejection(
                            firstCounter: batch.firstCounter, count: batch.count,
                            code: fault.code, message: fault.message, version: fault.version)
                        effects.append(.send(.rejection(rejection), to: connection))
                        return
                    }
                }
                """),
        PlantedBug(
            name: "a transaction overlooks what it only reads", rule: 25,
            file: "ConfluxProtocol/Sequencer/Entries/SequencerMachine+Submit.swift",
            original: """
                guard let fault = faults[index] ?? conflict(of: row) else { continue }
                """,
            planted: """
                guard !PLANTED || index < entryRows,
                    let fault = faults[index] ?? conflict(of: row)
                else { continue }
                """),
        PlantedBug(
            name: "a transaction reads a store that lags", rule: 25,
            file: "ConfluxNode/Transactions/NodeTransaction.swift",
            original: """
                replica.hasCaughtUp && !replica.progress.hasOpenRuns
                """,
            planted: """
                (PLANTED || replica.hasCaughtUp && !replica.progress.hasOpenRuns)
                """),
        PlantedBug(
            name: "a transaction reads a store that is ahead", rule: 25,
            file: "ConfluxNode/Transactions/NodeTransaction.swift",
            original: """
                && replica.progress.delivered <= delivered
                """,
            planted: """
                && (PLANTED || replica.progress.delivered <= delivered)
                """),
    ]
}
