extension PlantedBug {
    /// Long-lived stores: digest points, snapshots, versions and the floor.
    static let stores: [PlantedBug] = [
        PlantedBug(
            name: "a state without a majority is confirmed", rule: 22,
            file: "ConfluxProtocol/Sequencer/Snapshots/SequencerMachine+Digests.swift",
            original: """
                upload(result, of: round, isConfirmed: false, at: now, into: &effects)
                """,
            planted: """
                upload(result, of: round, isConfirmed: PLANTED, at: now, into: &effects)
                """),
        PlantedBug(
            name: "the floor passes the older checkpoint", rule: 20,
            file: "ConfluxProtocol/Sequencer/Snapshots/SequencerMachine+Floor.swift",
            original: """
                var lowest = checkpoints[0].next
                """,
            planted: """
                var lowest = checkpoints[PLANTED ? 1 : 0].next
                """),
        PlantedBug(
            name: "the floor passes a store's snapshot", rule: 20,
            file: "ConfluxProtocol/Sequencer/Snapshots/SequencerMachine+Floor.swift",
            original: """
                return life.record.keptThrough.next
                """,
            planted: """
                return PLANTED ? nil : life.record.keptThrough.next
                """),
        PlantedBug(
            name: "a snapshot that came is not checked", rule: 19,
            file: "ConfluxProtocol/Sequencer/Snapshots/SnapshotUpload.swift",
            original: """
                guard offset < reference.byteCount || hasher.finish()
                """,
            planted: """
                guard PLANTED || offset < reference.byteCount || hasher.finish()
                """),
        PlantedBug(
            name: "votes for an older point count", rule: 18,
            file: "ConfluxProtocol/Sequencer/Snapshots/Votes.swift",
            original: """
                guard let round, round.place == vote.place,
                """,
            planted: """
                guard let round, PLANTED || round.place == vote.place,
                """),
        PlantedBug(
            name: "what was given up is asked for", rule: 20,
            file: "ConfluxProtocol/Replica/ReplicaMachine+Hosting.swift",
            original: """
                let below = SequenceNumber(max(start.floor.rawValue, 1) - 1)
                """,
            planted: """
                let below = SequenceNumber(PLANTED ? 0 : max(start.floor.rawValue, 1) - 1)
                """),
        PlantedBug(
            name: "entries for a whole state reach a frozen store", rule: 21,
            file: "ConfluxNode/Stores/StoreRun.swift",
            original: """
                guard replica?.isFrozen != true else { return false }
                """,
            planted: """
                guard PLANTED || replica?.isFrozen != true else { return false }
                """),
        PlantedBug(
            name: "a joiner does not hear what is skipped", rule: 23,
            file: "ConfluxNode/Apply/Applier+Hosting.swift",
            original: """
                replica.skips = Set(skipped)
                """,
            planted: """
                replica.skips = PLANTED ? [] : Set(skipped)
                """, world: "poisoned"),
        PlantedBug(
            name: "a replica does not thaw", rule: 21,
            file: "ConfluxNode/Apply/Applier+Events.swift",
            original: """
                pass(store, life, at: sequence, recipients)?.progress.comeBack(at: sequence)
                """,
            planted: """
                if !PLANTED {
                    pass(store, life, at: sequence, recipients)?.progress.comeBack(at: sequence)
                }
                """),
        PlantedBug(
            name: "who has applied what is skipped goes on", rule: 23,
            file: "ConfluxNode/Apply/Applier+Events.swift",
            original: """
                replica.progress.letGo()
                """,
            planted: """
                if !PLANTED { replica.progress.letGo() }
                """, world: "poisoned"),
        PlantedBug(
            name: "the log is never given up", rule: 20,
            file: "ConfluxProtocol/Sequencer/Snapshots/SequencerMachine+Floor.swift",
            original: """
                guard checkpoints.count == 2 else { return SequenceNumber(1) }
                """,
            planted: """
                guard checkpoints.count == 2, !PLANTED else { return SequenceNumber(1) }
                """),
        PlantedBug(
            name: "entries for a whole state do not keep the log", rule: 20,
            file: "ConfluxProtocol/Sequencer/Stores/StateTable.swift",
            original: """
                records.values[index].load.add(load.byteCount, at: first.advanced(by: load.last))
                """,
            planted: """
                records.values[index].load.add(
                    load.byteCount, at: PLANTED ? .zero : first.advanced(by: load.last))
                """),
        PlantedBug(
            name: "votes with a skipped entry in them count", rule: 23,
            file: "ConfluxProtocol/Sequencer/Stores/SequencerMachine+Skipping.swift",
            original: """
                if let round = directory.life(of: name)?.work.votes.round,
                """,
            planted: """
                if !PLANTED, let round = directory.life(of: name)?.work.votes.round,
                """, world: "poisoned"),
        PlantedBug(
            name: "every effect is unknown", rule: 17,
            file: "ConfluxNode/Outcomes/NoEffects.swift",
            original: """
                return sequence <= unknownThrough ? .unknown : .applied
                """,
            planted: """
                return PLANTED || sequence <= unknownThrough ? .unknown : .applied
                """),
    ]
}
