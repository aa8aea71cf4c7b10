extension PlantedBug {
    private static let timers = "ConfluxProtocol/Sequencer/Timers/SequencerMachine+Timers.swift"
    private static let leases = "ConfluxProtocol/Sequencer/Leases/SequencerMachine+Leases.swift"

    /// What entries ask of the log itself: timers and leases.
    static let requests: [PlantedBug] = [
        PlantedBug(
            name: "a timer fires again after a failover", rule: 26,
            file: "ConfluxProtocol/Sequencer/Entries/SequencerMachine+Requests.swift",
            original: """
                if session == .none { timers.fire(SequenceNumber(batch.firstCounter), at: first) }
                """,
            planted: """
                if session == .none, !PLANTED {
                    timers.fire(SequenceNumber(batch.firstCounter), at: first)
                }
                """),
        PlantedBug(
            name: "a timer fires before its time", rule: 26, file: timers,
            original: """
                timerSchedule.set(number, after: timestamp.distance(to: timer.due), at: now)
                """,
            planted: """
                timerSchedule.set(
                    number, after: timestamp.distance(to: timer.due) * (PLANTED ? 0.75 : 1), at: now)
                """),
        PlantedBug(
            name: "a timer that was cancelled fires", rule: 26, file: timers,
            original: """
                if let ended { timerSchedule.remove(ended.number) }
                """,
            planted: """
                if PLANTED, case .cancel = request { return }
                if let ended { timerSchedule.remove(ended.number) }
                """),
        PlantedBug(
            name: "a timer is for any life of its store", rule: 26, file: timers,
            original: """
                for (row, target) in targets.enumerated() where target.life == .zero {
                """,
            planted: """
                for (row, target) in targets.enumerated() where target.life == .zero && !PLANTED {
                """),
        PlantedBug(
            name: "a repeating timer is forgotten after its first firing", rule: 26,
            file: "ConfluxProtocol/Sequencer/Timers/TimerTable.swift",
            original: """
                for entry in landed { timers[entry.timer]?.land(entry.entry, at: timestamp) }
                """,
            planted: """
                for entry in landed where !PLANTED { timers[entry.timer]?.land(entry.entry, at: timestamp) }
                """),
        PlantedBug(
            name: "an action under a lease is not compared", rule: 42,
            file: "ConfluxProtocol/Sequencer/Entries/SequencerMachine+Conditions.swift",
            original: """
                guard case .store(let name) = row.target else { return fault(ofActionUnder: condition) }
                """,
            planted: """
                guard case .store(let name) = row.target else {
                    return PLANTED ? nil : fault(ofActionUnder: condition)
                }
                """),
        PlantedBug(
            name: "a claim that waits is as good as one that holds", rule: 42, file: leases,
            original: """
                guard !isThere || !leases.isHeld(claim.sequence) else { return nil }
                """,
            planted: """
                guard !isThere || !(PLANTED || leases.isHeld(claim.sequence)) else { return nil }
                """),
        PlantedBug(
            name: "a lock keeps nobody out", rule: 42,
            file: "ConfluxProtocol/Sequencer/Leases/LeaseTable.swift",
            original: """
                claim.locks && target.concerns(claim.name) && claim.session != session
                """,
            planted: """
                claim.locks && !PLANTED && target.concerns(claim.name) && claim.session != session
                """),
        PlantedBug(
            name: "a lease outlives its session", rule: 42,
            file: "ConfluxProtocol/Sequencer/Sessions/SequencerMachine+Presence.swift",
            original: """
                leases.end(claimsOf: incarnation, at: entry)
                """,
            planted: """
                if !PLANTED { leases.end(claimsOf: incarnation, at: entry) }
                """),
        PlantedBug(
            name: "a lease is said to be held before the log has it", rule: 42,
            file: "ConfluxProtocol/Sequencer/Leases/LeaseTable.swift",
            original: """
                guard isDecided(number) else { return nil }
                """,
            planted: """
                guard PLANTED || isDecided(number) else { return nil }
                """),
        PlantedBug(
            name: "leases are not in checkpoints", rule: 42,
            file: "ConfluxProtocol/Wire/Log/LogState+Wire.swift",
            original: """
                guard claim.number <= last, leases.restore(claim) else {
                """,
            planted: """
                guard claim.number <= last, PLANTED || leases.restore(claim) else {
                """),
        PlantedBug(
            name: "timers are not in checkpoints", rule: 26,
            file: "ConfluxProtocol/Wire/Log/LogState+Wire.swift",
            original: """
                guard timer.number <= last, timers.restore(timer) else {
                """,
            planted: """
                guard timer.number <= last, PLANTED || timers.restore(timer) else {
                """),
    ]
}
