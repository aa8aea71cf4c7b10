extension PlantedBug {
    /// Schema versions that rise.
    static let upgrades: [PlantedBug] = [
        PlantedBug(
            name: "a version rises before its migration is known", rule: 17,
            file: "ConfluxProtocol/Sequencer/Stores/SequencerMachine+Rising.swift",
            original: """
                guard let life = directory.life(of: name), let rise = life.work.rise else { return }
                switch rise.step {
                """,
            planted: """
                guard let life = directory.life(of: name), let rise = life.work.rise else { return }
                if PLANTED, rise.step == .rehearsing {
                    say(.upgraded(schemaVersion: rise.version, base: rise.base, .zero), of: name)
                    directory.change(name) { $0.rise = nil }
                    return
                }
                switch rise.step {
                """, world: "releases"),
        PlantedBug(
            name: "a version rises that a host does not understand", rule: 17,
            file: "ConfluxProtocol/Sequencer/Stores/SequencerMachine+Upgrading.swift",
            original: """
                return (hosts + others + [opener?.newest].compactMap(\\.self)).min() ?? 0
                """,
            planted: """
                let newest = (hosts + others + [opener?.newest].compactMap(\\.self))
                return (PLANTED ? newest.max() : newest.min()) ?? 0
                """, world: "releases"),
        PlantedBug(
            name: "an upgrade judges entries again", rule: 17,
            file: "ConfluxProtocol/Sequencer/Stores/SequencerMachine+Rising.swift",
            original: """
                let isWhole = directory.stamp(of: name) <= life.record.baseSequence
                """,
            planted: """
                let isWhole = PLANTED || directory.stamp(of: name) <= life.record.baseSequence
                """, world: "releases"),
    ]
}
