import Foundation

/// One action in flight, while many observers read the log from its beginning: until its receipt,
/// beside the same without them.
struct ReadersWorkload {
    /// How many observers read at once. Each begins anew when it is at the end.
    let readers: Int
    /// How many actions the log has beforehand.
    let history: Int
    let count: Int

    func measure(_ settings: Settings) throws -> [Row] {
        var busy: [[UInt64]] = []
        var quiet: [[UInt64]] = []
        for round in 0..<settings.rounds {
            settings.note("readers, round \(round + 1)")
            let (with, without) = try Cluster.run(in: settings.folder) { cluster in
                try run(in: cluster, isQuietFirst: round.isMultiple(of: 2))
            }
            busy.append(with)
            quiet.append(without)
        }
        return [(0.5, "p50"), (0.99, "p99")].map { share, rank in
            Row(
                "readers", "\(readers) read from 1, receipt \(rank)", "µs",
                busy.map { percentile(share, of: $0) / 1_000 },
                quiet.map { percentile(share, of: $0) / 1_000 })
        }
    }

    /// Both are measured on one sequencer, one after the other.
    private func run(
        in cluster: Cluster, isQuietFirst: Bool
    ) throws -> (with: [UInt64], without: [UInt64]) {
        let (sequencer, addresses) = try cluster.startSequencer(
            .conflux, .fsync, zeroedBytes: 0, subscribers: 1)
        try sequencer.awaitReady()
        let producer = try cluster.start(
            .producer(address: addresses[0], producer: 0, count: history))
        try producer.go()
        guard case .produced = try producer.next() else {
            throw BenchError("the producer told something else")
        }
        var with: [UInt64] = []
        var without: [UInt64] = []
        for isQuiet in [isQuietFirst, !isQuietFirst] {
            let others =
                isQuiet ? nil : try cluster.start(.readers(address: addresses[0], count: readers))
            try others?.awaitReady()
            let client = try cluster.start(.roundTrips(address: addresses[0], count: count))
            try client.awaitReady()
            try client.go()
            guard case .roundTrips(_, let receipt) = try client.next() else {
                throw BenchError("the node told something else")
            }
            others?.end()
            if isQuiet { without = receipt.sorted() } else { with = receipt.sorted() }
        }
        return (with, without)
    }
}
