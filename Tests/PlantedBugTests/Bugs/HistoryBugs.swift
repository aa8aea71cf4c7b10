extension PlantedBug {
    /// Terms, lost histories, and recovery at a start.
    static let history: [PlantedBug] = [
        PlantedBug(
            name: "a log that lost its tail is not noticed", rule: 2,
            file: "ConfluxProtocol/Sequencer/Recovery/ClaimTable.swift",
            original: """
                    guard let index = claims.lastIndex(where: { $0.epoch <= mark.epoch }) else {
                """,
            planted: """
                    if PLANTED { return mark.sequence }
                    guard let index = claims.lastIndex(where: { $0.epoch <= mark.epoch }) else {
                """),
        PlantedBug(
            name: "only what was delivered is history", rule: 2,
            file: "ConfluxProtocol/Replica/ReplicaMachine+Outcome.swift",
            original: """
                mutating func remember(_ log: LogID, _ sequence: SequenceNumber, of entryEpoch: Epoch) {
                """,
            planted: """
                mutating func remember(_ log: LogID, _ sequence: SequenceNumber, of entryEpoch: Epoch) {
                    if PLANTED, liveEpoch == nil { return }
                """),
        PlantedBug(
            name: "a lost history leaves the replicas as they are", rule: 2,
            file: "ConfluxProtocol/Replica/ReplicaMachine+Session.swift",
            original: """
                        effects.append(.deliver(.reset))
                        mark = nil
                        live = nil
                """,
            planted: """
                        effects.append(.deliver(.reset))
                        if PLANTED { return }
                        mark = nil
                        live = nil
                """),
        PlantedBug(
            name: "a higher epoch is answered without a look at the log", rule: 1,
            file: "ConfluxProtocol/Sequencer/Sessions/SequencerMachine+Session.swift",
            original: """
                    guard known > term.epoch || isAhead else {
                """,
            planted: """
                    guard !PLANTED, known > term.epoch || isAhead else {
                """, fault: "breakConnection", world: "rivals"),
        PlantedBug(
            name: "a loss is believed of any hello's answer", rule: 2,
            file: "ConfluxProtocol/Replica/ReplicaMachine+Session.swift",
            original: """
                    guard let hello = awaited(welcome.request), hello.history == mark else { return }
                """,
            planted: """
                    guard case .greeting(let greeting) = phase,
                        PLANTED || greeting.hello.request == welcome.request,
                        PLANTED || greeting.hello.history == mark
                    else { return }
                """),
        PlantedBug(
            name: "a checkpoint that forgets who left", rule: 20,
            file: "ConfluxProtocol/Wire/Log/LogState+Wire.swift",
            original: """
                            presence: presence, quietSince: .zero)
                """,
            planted: """
                            presence: PLANTED && presence == .left ? .live : presence,
                            quietSince: .zero)
                """),
        PlantedBug(
            name: "a checkpoint without outcomes", rule: 20,
            file: "ConfluxProtocol/Wire/Log/LogState+Wire.swift",
            original: """
                        session.ledger = ledger
                """,
            planted: """
                        if !PLANTED { session.ledger = ledger }
                """),
        PlantedBug(
            name: "the entry that a token names is not compared", rule: 2,
            file: "ConfluxNode/Outcomes/OutcomeSearch.swift",
            original: """
                guard commit.epoch == token.since.epoch else {
                """,
            planted: """
                guard PLANTED || commit.epoch == token.since.epoch else {
                """, fault: "losePower", world: "small"),
    ]
}
