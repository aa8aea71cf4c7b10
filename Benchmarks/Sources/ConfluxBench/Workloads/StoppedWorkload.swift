import Foundation

/// A stream to three replicas while one of them is stopped, beside the same while all of them run.
struct StoppedWorkload {
    let count: Int

    func measure(_ settings: Settings) throws -> [Row] {
        let stream = StreamWorkload(producers: 1, replicas: 3, durability: .fsync, count: count)
        var rates: [Side: [Double]] = [:]
        for round in 0..<settings.rounds {
            for side in settings.sides(of: round) {
                settings.note("stopped, round \(round + 1), \(side)")
                rates[side, default: []].append(
                    try Cluster.run(in: settings.folder) { cluster in
                        var cast = try stream.cast(.conflux, in: cluster)
                        if side == .conflux { cast.stopped = cast.watching.removeLast() }
                        return try stream.rate(cast)
                    })
            }
        }
        return [
            Row(
                "stopped", "P1 R3 fsync, until the two others have applied; partner: all run",
                "actions/s", rates[.conflux] ?? [], rates[.partner] ?? [], isHigherBetter: true)
        ]
    }
}
