import Foundation

/// A replica applies the same actions with the default settings for digests and snapshots, and
/// without digests and snapshots.
struct DigestWorkload {
    let count: Int

    private static let stateBytes = 1_000_000

    private struct Result {
        /// The processor time of the replica's process, in microseconds for each action.
        var replicaCost: Double
        var sequencerCost: Double
        /// Actions per second, until the replica has applied the last one.
        var rate: Double
    }

    func measure(_ settings: Settings) throws -> [Row] {
        var results: [Side: [Result]] = [:]
        var snapshots = 0
        for round in 0..<settings.rounds {
            for side in settings.sides(of: round) {
                settings.note(
                    "digest, round \(round + 1), \(side == .conflux ? "with" : "without")")
                results[side, default: []].append(
                    try Cluster.run(in: settings.folder) { try run(side, &snapshots, in: $0) })
            }
        }
        func row(_ name: String, _ unit: String, _ value: (Result) -> Double, isRate: Bool) -> Row {
            Row(
                "digest", name, unit, (results[.conflux] ?? []).map(value),
                (results[.partner] ?? []).map(value), isHigherBetter: isRate)
        }
        return [
            row(
                "\(count) actions, \(snapshots) snapshots, replica; partner: no digests",
                "CPU µs/action", \.replicaCost, isRate: false),
            row("the same, sequencer", "CPU µs/action", \.sequencerCost, isRate: false),
            row("the same, until applied", "actions/s", \.rate, isRate: true),
        ]
    }

    private func run(_ side: Side, _ snapshots: inout Int, in cluster: Cluster) throws -> Result {
        let history = try History(
            side == .conflux ? KeeperSettings(keepsAll: true) : .withoutDigests, log: "log",
            stateBytes: Self.stateBytes, in: cluster)
        let replica = try cluster.start(.ledger(address: history.address))
        try replica.time(.open(History.name))
        let before = (
            try replica.usedProcessorNanoseconds(), try history.keeper.usedProcessorNanoseconds()
        )
        let took = try history.write(to: count) + replica.time(.barrier)
        let after = (
            try replica.usedProcessorNanoseconds(), try history.keeper.usedProcessorNanoseconds()
        )
        if side == .conflux { snapshots = try history.look().snapshots }
        return Result(
            replicaCost: Double(after.0 - before.0) / 1_000 / Double(count),
            sequencerCost: Double(after.1 - before.1) / 1_000 / Double(count),
            rate: Double(count) / (Double(took) / 1e9))
    }
}
