import Foundation

/// How long a new node takes until it is current: with a snapshot, and by applying the whole log.
struct JoinWorkload {
    /// The number of actions in the log.
    let count: Int

    private static let stateBytes = 1_000_000
    /// The number of entries after the snapshot.
    private static let tail = 10_000

    func measure(_ settings: Settings) throws -> [Row] {
        try Cluster.run(in: settings.folder) { cluster in
            settings.note("join, writing \(count) actions three times")
            let long = try history(KeeperSettings(), count, "long", cluster)
            let short = try history(KeeperSettings(), count / 4, "short", cluster)
            let whole = try History(
                .withoutSnapshots, log: "whole", stateBytes: Self.stateBytes, in: cluster)
            try whole.write(to: long.count)
            let path = cluster.path("snapshot")
            _ = try long.writer.time(.export(History.name, path: path))
            let decoder = try cluster.start(.decoder)

            var times: [String: [Double]] = [:]
            func add(_ name: String, _ nanoseconds: UInt64) {
                times[name, default: []].append(Double(nanoseconds) / 1e6)
            }
            for round in 0..<settings.rounds {
                settings.note("join, round \(round + 1)")
                let steps: [() throws -> Void] = [
                    { add("long", try long.join(in: cluster)) },
                    { add("short", try short.join(in: cluster)) },
                    { add("whole", try whole.join(in: cluster)) },
                    {
                        add(
                            "canonical",
                            try decoder.time(.decodeLedger(path: path, with: .canonical)))
                    },
                    {
                        add(
                            "foundation",
                            try decoder.time(.decodeLedger(path: path, with: .foundation)))
                    },
                ]
                for step in round.isMultiple(of: 2) ? steps : steps.reversed() { try step() }
            }
            func row(_ name: String, beside partner: String) -> Row {
                Row("join", name, "ms", times["long"] ?? [], times[partner] ?? [])
            }
            let state = "\(Self.tail) behind a snapshot of \(long.kept.snapshotBytes) bytes"
            return [
                row(
                    "\(long.count) entries, \(state); partner: \(short.count) entries",
                    beside: "short"),
                row("the same; partner: applying all of them", beside: "whole"),
                row(
                    "the same; partner: reading and decoding the snapshot alone",
                    beside: "canonical"),
                row("the same; partner: the same by Foundation's decoder", beside: "foundation"),
            ]
        }
    }

    private func history(
        _ settings: KeeperSettings, _ count: Int, _ log: String, _ cluster: Cluster
    ) throws -> History {
        let history = try History(settings, log: log, stateBytes: Self.stateBytes, in: cluster)
        try history.write(atLeast: count, tail: Self.tail)
        return history
    }
}
