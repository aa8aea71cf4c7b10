extension PlantedBug {
    /// Nodes that dispatch without joining.
    static let visits: [PlantedBug] = [
        PlantedBug(
            name: "a visit that was forgotten begins again", rule: 42,
            file: "ConfluxProtocol/Sequencer/Sessions/SequencerMachine+Visits.swift",
            original: """
                sessions.forgottenVisit.rawValue <= visit.since.rawValue
                """,
            planted: """
                PLANTED || sessions.forgottenVisit.rawValue <= visit.since.rawValue
                """),
        PlantedBug(
            name: "a visit begins behind the last welcome", rule: 42,
            file: "ConfluxProtocol/Replica/Submission/ReplicaMachine+Visit.swift",
            original: """
                visitSince = min(visitSince ?? welcome.last, welcome.last)
                """,
            planted: """
                visitSince = PLANTED ? welcome.last : min(visitSince ?? welcome.last, welcome.last)
                """),
        PlantedBug(
            name: "what a visit settled is judged again", rule: 42,
            file: "ConfluxProtocol/Sequencer/Sessions/SequencerMachine+Visits.swift",
            original: """
                sessions.change(incarnation) { $0.settle(through: visit.settled) }
                """,
            planted: """
                if !PLANTED { sessions.change(incarnation) { $0.settle(through: visit.settled) } }
                """, world: "rivals"),
    ]
}
