import Foundation

/// One action in flight: from its dispatch until it is applied on the same node.
struct LatencyWorkload {
    let durability: Durability
    /// How much of the partner's log is written beforehand; 0 for a file that grows.
    let zeroedBytes: Int
    let count: Int

    var name: String {
        switch (durability, zeroedBytes) {
        case (.memory, _): "memory"
        case (.fsync, 0): "fsync (partner: growing file)"
        case (.fsync, _): "fsync (partner: zeroed file)"
        }
    }

    /// Sorted nanoseconds.
    struct Result {
        var applied: [UInt64]
        var receipt: [UInt64]

        func microseconds(
            _ path: KeyPath<Result, [UInt64]>, _ share: Double
        ) -> Double {
            percentile(share, of: self[keyPath: path]) / 1_000
        }
    }

    func measure(_ settings: Settings) throws -> [Row] {
        var results: [Side: [Result]] = [:]
        for round in 0..<settings.rounds {
            for side in settings.sides(of: round) {
                settings.note("latency \(name), round \(round + 1), \(side)")
                results[side, default: []].append(
                    try Cluster.run(in: settings.folder) { try run(side, in: $0) })
            }
        }
        return [(\Result.applied, "applied"), (\Result.receipt, "receipt")].flatMap {
            path, what in
            [(0.5, "p50"), (0.99, "p99")].map { share, rank in
                Row(
                    "latency", "\(name), \(what) \(rank)", "µs",
                    (results[.conflux] ?? []).map { $0.microseconds(path, share) },
                    (results[.partner] ?? []).map { $0.microseconds(path, share) })
            }
        }
    }

    func run(_ side: Side, in cluster: Cluster) throws -> Result {
        let (sequencer, addresses) = try cluster.startSequencer(
            side, durability, zeroedBytes: zeroedBytes, subscribers: 1)
        let client = try cluster.start(
            side == .conflux
                ? .roundTrips(at: Place(addresses[0]), count: count)
                : .partnerRoundTrips(input: addresses[0], output: addresses[1], count: count))
        try sequencer.awaitReady()
        return try times(of: client)
    }

    /// Has a node begin, and waits for its times.
    func times(of client: Child) throws -> Result {
        try client.awaitReady()
        try client.go()
        guard case .roundTrips(let applied, let receipt) = try client.next() else {
            throw BenchError("the node told something else")
        }
        return Result(applied: applied.sorted(), receipt: receipt.sorted())
    }
}
