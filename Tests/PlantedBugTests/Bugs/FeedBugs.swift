extension PlantedBug {
    private static let folder = "ConfluxProtocol/Replica/Feed/"

    /// The feed, catching up, and what a node reports about its actions.
    static let feed: [PlantedBug] = [
        PlantedBug(
            name: "a beat without the last number", rule: 6,
            file: "ConfluxProtocol/Sequencer/Sessions/SequencerMachine+Presence.swift",
            original: """
                            effects.append(.publishBeat(term.beat))
                """,
            planted: """
                            var beat = term.beat
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
                            guard let live, commit.last > live, commit.first <= live.next else { continue }
                            advance(
                """,
            planted: """
                            if PLANTED, commit.epoch != epoch {
                                meet(commit.epoch, at: now, into: &effects)
                                return
                            }
                            guard let live, commit.last > live, commit.first <= live.next else { continue }
                            advance(
                """),
        PlantedBug(
            name: "the subscription is not proven", rule: 4,
            file: "ConfluxProtocol/Replica/ReplicaMachine+Hosting.swift",
            original: """
                        guard phase == .joined, isFollowing || feed == .unwanted else { return }
                """,
            planted: """
                        guard phase == .joined, PLANTED || isFollowing || feed == .unwanted else { return }
                        if PLANTED, !isFollowing, feed != .unwanted { live = remoteLast.next.next }
                """),
        PlantedBug(
            name: "a store is attached before it has caught up", rule: 4,
            file: folder + "CatchUps.swift",
            original: """
                            if runner.cursor >= live {
                                attach(
                """,
            planted: """
                            if PLANTED || runner.cursor >= live {
                                attach(
                """),
        PlantedBug(
            name: "a runner takes along who is below it", rule: 4, file: folder + "CatchUps.swift",
            original: """
                        let nearest = runners.indices.filter { runners[$0].cursor <= position }
                """,
            planted: """
                        let nearest = runners.indices.filter { PLANTED || runners[$0].cursor <= position }
                """),
        PlantedBug(
            name: "a store's position is ignored", rule: 4,
            file: "ConfluxNode/Stores/StoreRun.swift",
            original: """
                        guard progress.phase != .ended, sequence > progress.delivered else { return false }
                """,
            planted: """
                        guard progress.phase != .ended, PLANTED || sequence > progress.delivered else { return false }
                """),
        PlantedBug(
            name: "an opener keeps its own state", rule: 16,
            file: "ConfluxNode/Stores/Replica.swift",
            original: """
                        case .success(let put):
                            put(
                """,
            planted: """
                        case .success where PLANTED: reports.add(.restored(request: request, nil))
                        case .success(let put):
                            put(
                """),
        PlantedBug(
            name: "outcomes are told before they are applied here", rule: 13,
            file: "ConfluxNode/Outcomes/Applier+Outcomes.swift",
            original: """
                        where behindOthers && store.isAwaited || !store.hasReached(last, delivered) {
                """,
            planted: """
                        where !PLANTED
                            && (behindOthers && store.isAwaited || !store.hasReached(last, delivered)) {
                """),
        PlantedBug(
            name: "who has waited for a store is told that it is done", rule: 13,
            file: "ConfluxNode/Outcomes/Applier+Outcomes.swift",
            original: """
                        if outcome.openCount == 0 { hold(outcome, behindOthers: false) }
                """,
            planted: """
                        if outcome.openCount == 0, PLANTED {
                            end(outcome, [])
                        } else if outcome.openCount == 0 {
                            hold(outcome, behindOthers: false)
                        }
                """),
        PlantedBug(
            name: "a node exceeds its window", rule: 27,
            file: "ConfluxProtocol/Replica/ReplicaMachine+Bounds.swift",
            original: """
                                || submissions.unsettledBytes + bytes
                """,
            planted: """
                                || PLANTED || submissions.unsettledBytes + bytes
                """),
    ]
}
