import Foundation

/// How a store in trouble delays another store of the same node: with one action in flight to the other one,
/// until its receipt.
struct NeighboursWorkload {
    /// About how many bytes of log a store catches up with.
    let bytes: Int

    private static let quiet = "quiet"
    private static let quietRows = 10
    /// The length of an action's text.
    private static let textBytes = 4_096
    /// As many threads as work for a store that catches up: one reads the log, and one applies.
    private static let busyThreads = 2
    /// The number of actions for a store whose executor has stopped. They have more bytes than its node buffers.
    private static let stoppedCount = 10_000

    private struct Result {
        var alone: [UInt64]
        /// While processors do useless work, as much as a store that catches up would make.
        var besideBusy: [UInt64]
        /// While a store of another node catches up.
        var besideOther: [UInt64]
        var besideCatchUp: [UInt64]
        var besideRunning: [UInt64]
        var besideStopped: [UInt64]
    }

    func measure(_ settings: Settings) throws -> [Row] {
        var results: [Result] = []
        for round in 0..<settings.rounds {
            settings.note("neighbours, round \(round + 1)")
            results.append(try Cluster.run(in: settings.folder) { try run(in: $0) })
        }
        func rows(
            _ what: String, _ ours: KeyPath<Result, [UInt64]>, _ theirs: KeyPath<Result, [UInt64]>
        ) -> [Row] {
            [(0.5, "p50"), (0.99, "p99")].map { share, rank in
                func figures(_ path: KeyPath<Result, [UInt64]>) -> [Double] {
                    results.map { percentile(share, of: $0[keyPath: path].sorted()) / 1_000 }
                }
                return Row("neighbours", "\(what), \(rank)", "µs", figures(ours), figures(theirs))
            }
        }
        return rows(
            "receipt while a store of the node catches up on \(bytes >> 20) MiB; partner: before",
            \.besideCatchUp, \.alone)
            + rows(
                "the same; partner: while as many threads are busy with nothing",
                \.besideCatchUp, \.besideBusy)
            + rows(
                "receipt while a store of another node catches up; partner: before",
                \.besideOther, \.alone)
            + rows(
                "receipt while a store whose executor has stopped gets actions; partner: it runs",
                \.besideStopped, \.besideRunning)
    }

    private func run(in cluster: Cluster) throws -> Result {
        let history = try History(.withoutSnapshots, log: "log", stateBytes: 630, in: cluster)
        try history.writer.time(
            .append(History.name, count: bytes / Self.textBytes, bytes: Self.textBytes))
        let node = try cluster.start(.ledger(address: history.address))
        try node.time(.open(Self.quiet))
        _ = try node.times(.roundTrips(Self.quiet, count: 500, rows: Self.quietRows))
        let alone = try node.times(.roundTrips(Self.quiet, count: 1_500, rows: Self.quietRows))
        let busy = try cluster.start(.busy(threads: Self.busyThreads))
        let besideBusy = try node.times(
            .roundTrips(Self.quiet, count: 1_500, rows: Self.quietRows))
        busy.end()
        let other = try cluster.start(.ledger(address: history.address))
        let besideOther = try beside(node) { try other.time(.open(History.name)) }
        other.end()
        let besideCatchUp = try beside(node) { try node.time(.open(History.name)) }
        var besides: [[UInt64]] = []
        for name in ["running", "stopped"] {
            try node.time(.openGated(name))
            try history.writer.time(.open(name))
            if name == "stopped" { try node.time(.stopGated) }
            besides.append(
                try beside(node) {
                    try history.writer.time(
                        .append(name, count: Self.stoppedCount, bytes: Self.textBytes))
                })
        }
        return Result(
            alone: alone, besideBusy: besideBusy, besideOther: besideOther,
            besideCatchUp: besideCatchUp,
            besideRunning: besides[0],
            besideStopped: besides[1])
    }

    private func beside(_ node: Child, _ body: () throws -> UInt64) throws -> [UInt64] {
        try node.time(.beginProbe(Self.quiet, rows: Self.quietRows))
        _ = try body()
        return try node.times(.endProbe)
    }
}
