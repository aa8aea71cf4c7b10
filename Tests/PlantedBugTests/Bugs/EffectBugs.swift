extension PlantedBug {
    private static let folder = "ConfluxNode/"

    /// The effects of an action on a node's stores, and what is reported about them.
    static let effects: [PlantedBug] = [
        PlantedBug(
            name: "a refusal stays one though a store that catches up took the action", rule: 4,
            file: folder + "Outcomes/NoEffects.swift",
            original: """
                one.rank >= other.rank ? one : other
                """,
            planted: """
                (PLANTED ? one.rank <= other.rank : one.rank >= other.rank) ? one : other
                """, states: "stock"),
        PlantedBug(
            name: "what a store refused is told to be done", rule: 4,
            file: folder + "Outcomes/NoEffects.swift",
            original: """
                if index < entries.count, entries[index].sequence == sequence {
                """,
            planted: """
                if index < entries.count, entries[index].sequence == sequence, !PLANTED {
                """),
        PlantedBug(
            name: "an effect is told before the replica has come to the entry", rule: 4,
            file: folder + "Apply/Applier+Questions.swift",
            original: """
                guard concerned.allSatisfy({ $0.hasReached(sequence, delivered) }) else { return false }
                """,
            planted: """
                guard PLANTED || concerned.allSatisfy({ $0.hasReached(sequence, delivered) }) else {
                    return false
                }
                """),
        PlantedBug(
            name: "outcomes do not wait for a store with an executor of its own", rule: 13,
            file: folder + "Stores/StoreProgress.swift",
            original: """
                if let first = openRuns.first { return first.before }
                """,
            planted: """
                if let first = openRuns.first, !PLANTED { return first.before }
                """),
        PlantedBug(
            name: "nobody has the encodings that snapshots are made of", rule: 19,
            file: folder + "Digests/EncodingShelf.swift",
            original: """
                guard bytes.count <= bytesMax else { return }
                """,
            planted: """
                guard bytes.count <= bytesMax, !PLANTED else { return }
                """),
    ]
}
