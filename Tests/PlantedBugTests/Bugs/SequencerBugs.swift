extension PlantedBug {
    private static let entries = "ConfluxProtocol/Sequencer/Entries/"

    /// Submission, commits, and their outcomes.
    static let sequencer: [PlantedBug] = [
        PlantedBug(
            name: "published before it is durable", rule: 13,
            file: entries + "SequencerMachine+Commit.swift",
            original: """
                            effects.append(.append(append))
                """,
            planted: """
                            if PLANTED { effects.append(.publishCommit(frame: append.commits[0].frame)) }
                            effects.append(.append(append))
                """),
        PlantedBug(
            name: "what is not in the log yet counts as its last number", rule: 13,
            file: entries + "SequencerMachine+Commit.swift",
            original: """
                    publishedAt = now.monotonic
                """,
            planted: """
                    if PLANTED {
                        term.land(
                            through: pipeline.lastAdmitted, byteCount: 0, at: term.clock.last)
                    }
                    publishedAt = now.monotonic
                """),
        PlantedBug(
            name: "no deduplication", rule: 9,
            file: entries + "SequencerMachine+Submit.swift",
            original: """
                    if lastCounter < expected {
                        send(
                """,
            planted: """
                    if PLANTED, lastCounter < expected, ledger.pendingBytes == 0 {
                        judge(&self)
                        announce(to: incarnation, into: &effects)
                        return
                    }
                    if lastCounter < expected {
                        send(
                """),
        PlantedBug(
            name: "what comes again is rejected", rule: 9,
            file: entries + "SequencerMachine+Submit.swift",
            original: """
                // Deduplication comes before every other check and returns the original outcome.
                """,
            planted: """
                if PLANTED, lastCounter <= ledger.lastCounter {
                    let rejection = Rejection(
                        firstCounter: batch.firstCounter, count: batch.count, code: .unrecorded,
                        message: "planted")
                    effects.append(.send(.rejection(rejection), to: connection))
                    return
                }
                """),
        PlantedBug(
            name: "a gap is passed over", rule: 9,
            file: entries + "SequencerMachine+Submit.swift",
            original: """
                    guard batch.firstCounter <= expected else {
                """,
            planted: """
                    if PLANTED, batch.firstCounter > expected {
                        sessions.change(incarnation) {
                            $0.judge(
                                count: UInt32(batch.firstCounter - expected), bytes: 0,
                                status: .rejected(.unrecorded, "planted"))
                        }
                    }
                    guard PLANTED || batch.firstCounter <= expected else {
                """),
        PlantedBug(
            name: "a discarded batch advances the counter", rule: 9,
            file: entries + "SequencerMachine+Submit.swift",
            original: """
                        if !isPaced { waste(.surplus, by: principal, at: now, into: &effects) }
                """,
            planted: """
                        if !isPaced { waste(.surplus, by: principal, at: now, into: &effects) }
                        if PLANTED {
                            sessions.change(incarnation) {
                                $0.judge(
                                    count: batch.count, bytes: 0,
                                    status: .rejected(.unrecorded, "planted"))
                            }
                        }
                """),
        PlantedBug(
            name: "what a restart left unrecorded is judged anew", rule: 9,
            file: entries + "SequencerMachine+Submit.swift",
            original: """
                    if batch.firstCounter < expected {
                """,
            planted: """
                    if PLANTED, batch.firstCounter < expected {
                        judge(&self)
                    } else if batch.firstCounter < expected {
                """),
        PlantedBug(
            name: "a void batch withdraws what was ordered", rule: 12,
            file: entries + "SequencerMachine+Submit.swift",
            original: """
                    // The node has every outcome up to here. That holds whatever becomes of the batch.
                """,
            planted: """
                    if PLANTED, batch.isVoid {
                        let rejection = Rejection(
                            firstCounter: batch.firstCounter, count: batch.count, code: .withdrawn,
                            message: "planted")
                        effects.append(.send(.rejection(rejection), to: connection))
                        return
                    }
                """),
        PlantedBug(
            name: "unknown targets are admitted", rule: 14,
            file: entries + "SequencerMachine+Submit.swift",
            original: """
                        faults.append(fault(of: row, hasEntries: index < entryRows, for: principal))
                """,
            planted: """
                        faults.append(
                            PLANTED ? nil : fault(of: row, hasEntries: index < entryRows, for: principal))
                """),
        PlantedBug(
            name: "time goes back", rule: 15,
            file: "ConfluxProtocol/Sequencer/Recovery/LogClock.swift",
            original: """
                    guard wall < last else {
                """,
            planted: """
                    guard !PLANTED && wall < last else {
                """),
        PlantedBug(
            name: "as many reads as anybody asks for", rule: 27,
            file: "ConfluxProtocol/Sequencer/Reading/SequencerMachine+Reading.swift",
            original: """
                    while reads.underWay < settings.readsMax, var
                """,
            planted: """
                    while PLANTED || reads.underWay < settings.readsMax, var
                """),
        PlantedBug(
            name: "an action of a version that nobody has is admitted", rule: 14,
            file: entries + "SequencerMachine+Submit.swift",
            original: """
                    guard row.schemaVersion < 1 || row.schemaVersion > present else { return nil }
                """,
            planted: """
                    guard !PLANTED, row.schemaVersion < 1 || row.schemaVersion > present
                    else { return nil }
                """),
        PlantedBug(
            name: "a store whose snapshot is lost begins with an older state", rule: 19,
            file: "ConfluxProtocol/Sequencer/Reading/SequencerMachine+Damage.swift",
            original: """
                    if let missing = directory.life(of: name)?.work.missing { return missing }
                """,
            planted: """
                    if !PLANTED, let missing = directory.life(of: name)?.work.missing { return missing }
                """,
            fault: "damage"),
        PlantedBug(
            name: "what is for a life that is over is admitted", rule: 16,
            file: "ConfluxProtocol/Sequencer/Stores/StoreDirectory+Reading.swift",
            original: """
                        guard let life = lives[name], !life.isEnding else { return nil }
                """,
            planted: """
                        guard let life = lives[name], !life.isEnding || PLANTED else { return nil }
                """),
    ]
}
