extension PlantedBug {
    private static let folder = "ConfluxProtocol/Sequencer/Sessions/"

    /// Who speaks, what is remembered about it, and for how long.
    static let sessions: [PlantedBug] = [
        PlantedBug(
            name: "a submit makes a session", rule: 8,
            file: folder + "SequencerMachine+Session.swift",
            original: """
                    guard let peer = connections[connection], speaker.epoch == term.epoch,
                """,
            planted: """
                    if PLANTED, connections[connection] == nil,
                        let someone = sessions.incarnations.first
                    {
                        return .member(someone)
                    }
                    guard let peer = connections[connection], speaker.epoch == term.epoch,
                """),
        PlantedBug(
            name: "welcomed before the session is in the log", rule: 8,
            file: folder + "SequencerMachine+Session.swift",
            original: """
                let isKeyed = hello.process != nil
                """,
            planted: """
                if PLANTED {
                    let early = Welcome(
                        request: hello.request, log: term.log, claim: term.nonce,
                        incarnation: Incarnation(pipeline.lastAdmitted.next.rawValue),
                        last: term.last, floor: term.floor, agreed: term.last, settled: 0,
                        lastCounter: 0, feed: settings.feed, limits: settings.limits)
                    effects.append(.send(.welcome(early), to: connection))
                }
                let isKeyed = hello.process != nil
                """),
        PlantedBug(
            name: "said to be forgotten before the log has it", rule: 8,
            file: folder + "SequencerMachine+Session.swift",
            original: """
                        leases.end(claimsOf: incarnation, at: entry)
                        sessions.end(incarnation)
                """,
            planted: """
                        leases.end(claimsOf: incarnation, at: entry)
                        if PLANTED { sessions.remove(incarnation) }
                        sessions.end(incarnation)
                """),
        PlantedBug(
            name: "forgotten is taken for left", rule: 10,
            file: "ConfluxProtocol/Sequencer/Recovery/LogState.swift",
            original: """
                            sessions.remove(incarnation)
                """,
            planted: """
                            if PLANTED {
                                sessions.leave(incarnation, at: .zero)
                            } else {
                                sessions.remove(incarnation)
                            }
                """),
        PlantedBug(
            name: "two live nodes of one name", rule: 10,
            file: folder + "SequencerMachine+Presence.swift",
            original: """
                        guard let name = hello.name else { return true }
                """,
            planted: """
                        guard !PLANTED, let name = hello.name else { return true }
                """),
        PlantedBug(
            name: "what was settled is not the last counter", rule: 9,
            file: folder + "OutcomeLedger.swift",
            original: """
                        lastCounter = max(lastCounter, settled)
                """,
            planted: """
                        if !PLANTED { lastCounter = max(lastCounter, settled) }
                """),
        PlantedBug(
            name: "lost outcomes are not told again", rule: 9,
            file: folder + "SequencerMachine+Session.swift",
            original: """
                            send(ledger.unsettled, to: connection, into: &effects)
                """,
            planted: """
                            if !PLANTED { send(ledger.unsettled, to: connection, into: &effects) }
                """),
        PlantedBug(
            name: "a rejection overtakes the commits before it", rule: 9,
            file: folder + "OutcomeLedger.swift",
            original: """
                        while index < records.count, records[index].status != .pending {
                """,
            planted: """
                        if PLANTED, let late = records[index...].last(where: { $0.status != .pending }) {
                            announced = late.last
                            return [late]
                        }
                        while index < records.count, records[index].status != .pending {
                """),
        PlantedBug(
            name: "a table of sessions without a bound", rule: 10,
            file: folder + "SequencerMachine+Session.swift",
            original: """
                        guard sessions.lastingCount + joining.count >= settings.sessionsMax else {
                """,
            planted: """
                        guard !PLANTED,
                            sessions.lastingCount + joining.count >= settings.sessionsMax
                        else {
                """),
    ]
}
