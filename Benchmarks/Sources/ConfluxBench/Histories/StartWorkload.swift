import Foundation

/// How long a sequencer takes to start with a long history: with checkpoints, and without.
struct StartWorkload {
    let count: Int

    private static let stateBytes = 1_000_000
    private static let checkpointBytes = 4 << 20

    func measure(_ settings: Settings) throws -> [Row] {
        try Cluster.run(in: settings.folder) { cluster in
            settings.note("start, writing \(count) actions three times")
            let with = KeeperSettings(checkpointBytes: Self.checkpointBytes, keepsAll: true)
            let without = KeeperSettings(checkpointBytes: .max, keepsAll: true)
            let sizes = [
                ("long", with, count), ("short", with, count / 4), ("whole", without, count),
            ]
            for (log, settings, count) in sizes {
                let history = try History(
                    settings, log: log, stateBytes: Self.stateBytes, in: cluster)
                try history.write(to: count)
                if log != "whole" { try history.wait(for: "checkpoint") { $0.checkpoints > 0 } }
                history.writer.end()
                history.keeper.end()
            }
            var times: [String: [Double]] = [:]
            var read: [String: UInt64] = [:]
            for round in 0..<settings.rounds {
                settings.note("start, round \(round + 1)")
                for (log, settings, _) in round.isMultiple(of: 2) ? sizes : sizes.reversed() {
                    let keeper = try cluster.startKeeper(settings, log: log).child
                    let kept = try keeper.kept()
                    keeper.end()
                    times[log, default: []].append(Double(kept.started) / 1e6)
                    read[log] = kept.read
                }
            }
            func row(_ name: String, beside partner: String) -> Row {
                Row("start", name, "ms", times["long"] ?? [], times[partner] ?? [])
            }
            return [
                row(
                    """
                    \(count) entries, of which \(read["long"] ?? 0) are behind the checkpoint; \
                    partner: all are read
                    """, beside: "whole"),
                row(
                    "the same; partner: \(count / 4), of which \(read["short"] ?? 0)",
                    beside: "short"),
            ]
        }
    }
}
