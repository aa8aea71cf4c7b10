extension PlantedBug {
    private static let folder = "ConfluxProtocol/Replica/Feed/"

    /// The feed, catching up, and what a node tells of its actions.
    static let feed: [PlantedBug] = [
        PlantedBug(
            name: "a beat without the last number", rule: 6,
            file: "ConfluxProtocol/Sequencer/Sessions/SequencerMachine+Presence.swift",
            original: """
                            effects.append(.publishBeat(tenure.beat))
                """,
            planted: """
                            var beat = tenure.beat
                            if PLANTED { beat.last = .zero }
                            effects.append(.publishBeat(beat))
                """),
        PlantedBug(
            name: "a hole is passed over", rule: 5, file: folder + "ReplicaMachine+Feed.swift",
            original: """
                        if commit.first <= live.next, hasRoom {
                """,
            planted: """
                        if PLANTED || commit.first <= live.next, hasRoom {
                """),
        PlantedBug(
            name: "a hole is not fetched", rule: 5, file: folder + "ReplicaMachine+Feed.swift",
            original: """
                        holeFetch = fetch(from: live.next, at: now, into: &effects)
                """,
            planted: """
                        if !PLANTED { holeFetch = fetch(from: live.next, at: now, into: &effects) }
                """),
        PlantedBug(
            name: "what waits behind a hole has no bound", rule: 5,
            file: folder + "ReplicaMachine+Feed.swift",
            original: """
                            if buffer.byteCount > settings.bufferBytesMax { buffer.removeAll() }
                """,
            planted: """
                            if !PLANTED, buffer.byteCount > settings.bufferBytesMax {
                                buffer.removeAll()
                            }
                """),
        PlantedBug(
            name: "the epoch of a fetched commit is taken for the speaker's", rule: 1,
            file: folder + "ReplicaMachine+Feed.swift",
            original: """
                            if isHole {
                                guard let live, commit.last > live
                """,
            planted: """
                            if PLANTED, commit.epoch != epoch {
                                meet(commit.epoch, at: now, into: &effects)
                                return
                            }
                            if isHole {
                                guard let live, commit.last > live
                """),
        PlantedBug(
            name: "the subscription is not proven", rule: 4, file: folder + "CatchUp.swift",
            original: """
                        guard phase == .joined, feed == .following else { return }
                """,
            planted: """
                        guard phase == .joined, PLANTED || feed == .following else { return }
                        if PLANTED, live == nil { live = remoteLast.next.next }
                """),
        PlantedBug(
            name: "a store is attached before it has caught up", rule: 4,
            file: folder + "CatchUp.swift",
            original: """
                        guard reached < live else {
                            let members
                """,
            planted: """
                        guard !PLANTED, reached < live else {
                            let members
                """),
        PlantedBug(
            name: "a store's position is ignored", rule: 4,
            file: "ConfluxNode/Apply/StateApplier.swift",
            original: """
                            guard place.sequence > hosted.lastChange else { return false }
                            hosted.lastChange = place.sequence
                """,
            planted: """
                            guard PLANTED || place.sequence > hosted.lastChange else { return false }
                            hosted.lastChange = place.sequence
                """),
        PlantedBug(
            name: "an opener keeps its own state", rule: 16,
            file: "ConfluxNode/Apply/HostedStore.swift",
            original: """
                                guard isWanted else { return completion(nil) }
                """,
            planted: """
                                guard isWanted, !PLANTED else { return completion(nil) }
                """),
        PlantedBug(
            name: "outcomes are told before they are applied here", rule: 13,
            file: "ConfluxProtocol/Replica/ReplicaMachine+Outcome.swift",
            original: """
                            guard isForced || isReached(entry, isFormer:
                """,
            planted: """
                            guard PLANTED || isForced || isReached(entry, isFormer:
                """),
        PlantedBug(
            name: "a node exceeds its window", rule: 27,
            file: "ConfluxProtocol/Replica/ReplicaMachine.swift",
            original: """
                                || submissions.unsettledBytes + bytes
                """,
            planted: """
                                || PLANTED || submissions.unsettledBytes + bytes
                """),
    ]
}
