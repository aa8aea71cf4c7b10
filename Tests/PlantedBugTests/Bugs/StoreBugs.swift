extension PlantedBug {
    /// Stores that live long: digest points, snapshots, versions, the floor.
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
                return store.keptThrough.next
                """,
            planted: """
                return PLANTED ? nil : store.keptThrough.next
                """),
        PlantedBug(
            name: "a snapshot that came is not checked", rule: 19,
            file: "ConfluxProtocol/Sequencer/Snapshots/SequencerMachine+Snapshots.swift",
            original: """
                guard !isLast || upload.hasher.finish()
                """,
            planted: """
                guard PLANTED || !isLast || upload.hasher.finish()
                """),
        PlantedBug(
            name: "votes of another version count", rule: 18,
            file: "ConfluxProtocol/Sequencer/Snapshots/DigestTable.swift",
            original: """
                round.schemaVersion == vote.schemaVersion,
                """,
            planted: """
                PLANTED || round.schemaVersion == vote.schemaVersion,
                """, fault: "upgrade"),
        PlantedBug(
            name: "votes for an older point count", rule: 18,
            file: "ConfluxProtocol/Sequencer/Snapshots/DigestTable.swift",
            original: """
                let round = rounds[store], round.place == vote.place,
                """,
            planted: """
                let round = rounds[store], PLANTED || round.place == vote.place,
                """),
        PlantedBug(
            name: "an older replica leaves out newer entries", rule: 17,
            file: "ConfluxNode/Apply/StateApplier.swift",
            original: """
                stop(runs, at: place, version: row.schemaVersion)
                """,
            planted: """
                if !PLANTED { stop(runs, at: place, version: row.schemaVersion) }
                """, fault: "upgrade"),
        PlantedBug(
            name: "what was given up is asked for", rule: 20,
            file: "ConfluxProtocol/Replica/Feed/CatchUp.swift",
            original: """
                let below = SequenceNumber(max(start.floor.rawValue, 1) - 1)
                """,
            planted: """
                let below = SequenceNumber(PLANTED ? 0 : max(start.floor.rawValue, 1) - 1)
                """),
        PlantedBug(
            name: "an upgrade does not wait for what is saved", rule: 17,
            file: "ConfluxProtocol/Sequencer/Stores/SequencerMachine+Hosting.swift",
            original: """
                guard !uploads.isSaving(name) else {
                """,
            planted: """
                guard PLANTED || !uploads.isSaving(name) else {
                """, fault: "upgrade"),
        PlantedBug(
            name: "entries for a whole state reach a frozen store", rule: 21,
            file: "ConfluxNode/Apply/StateApplier.swift",
            original: """
                guard !hosted.isDropped, !hosted.isFrozen else { return false }
                """,
            planted: """
                guard !hosted.isDropped, PLANTED || !hosted.isFrozen else { return false }
                """),
        PlantedBug(
            name: "a joiner does not hear what is skipped", rule: 23,
            file: "ConfluxNode/Apply/Applier+Hosting.swift",
            original: """
                hosted.skips = Set(skipped)
                """,
            planted: """
                hosted.skips = PLANTED ? [] : Set(skipped)
                """, fault: "poison"),
        PlantedBug(
            name: "a replica does not thaw", rule: 21,
            file: "ConfluxNode/Apply/Applier+Events.swift",
            original: """
                hosted(store, life, isCatchUp: isCatchUp, only: only)?.isFrozen = false
                """,
            planted: """
                hosted(store, life, isCatchUp: isCatchUp, only: only)?.isFrozen = PLANTED
                """),
        PlantedBug(
            name: "who begins anew goes on meanwhile", rule: 22,
            file: "ConfluxProtocol/Replica/Feed/CatchUp.swift",
            original: """
                effects.append(.deliver(.detach(store)))
                """,
            planted: """
                if !PLANTED { effects.append(.deliver(.detach(store))) }
                """),
        PlantedBug(
            name: "entries for a whole state do not keep the log", rule: 20,
            file: "ConfluxProtocol/Sequencer/Stores/StoreDirectory.swift",
            original: """
                globals[state, default: StoreLoad()].add(load.byteCount, at: last)
                """,
            planted: """
                globals[state, default: StoreLoad()].add(
                load.byteCount, at: PLANTED ? .zero : last)
                """),
        PlantedBug(
            name: "votes with a skipped entry in them count", rule: 23,
            file: "ConfluxProtocol/Sequencer/Stores/SequencerMachine+Freezing.swift",
            original: """
                if let round = digests.round(of: name), round.place.sequence >= sequence
                """,
            planted: """
                if !PLANTED, let round = digests.round(of: name),
                round.place.sequence >= sequence
                """, fault: "poison"),
        PlantedBug(
            name: "every effect is unknown", rule: 17,
            file: "ConfluxNode/Outcomes/Applier+Outcomes.swift",
            original: """
                let doubtful = doubtfulThrough(batch)
                """,
            planted: """
                let doubtful = PLANTED ? SequenceNumber(.max) : doubtfulThrough(batch)
                """),
    ]
}
