import Foundation

/// What waits while a large state is digested and its snapshot is taken: actions of another store of
/// the same node, and the feed. Also how long a new node takes to load the state.
struct LargeWorkload {
    let stateBytes: Int
    let table: TableKind

    private static let large = "large"
    private static let small = "small"
    private static let smallRows = 10
    /// The bytes of log between two digest points.
    private static let digestBytes: UInt64 = 1 << 20
    /// The number of writes, which make more log than that.
    private static let writes = 20_000

    struct Result {
        /// One action in flight to the small store: before the digest point, and during the snapshot.
        var before: [UInt64]
        var meanwhile: [UInt64]
        /// The times between two messages of the feed.
        var feedBefore: [UInt64]
        var feedMeanwhile: [UInt64]
        /// From about the digest point until the snapshot is there.
        var snapshot: Double
        var join: Double
        var decoding: Double
        var nodeBytes: Double
        var nodeBytesMost: Double

        /// The longest of these times, in milliseconds.
        var longestMeanwhile: Double { Double(meanwhile.max() ?? 0) / 1e6 }
    }

    func measure(_ settings: Settings) throws -> [Row] {
        var results: [Result] = []
        for round in 0..<settings.rounds {
            settings.note("large, \(table), round \(round + 1)")
            results.append(try Cluster.run(in: settings.folder) { try run(settings, in: $0) })
        }
        func most(_ path: KeyPath<Result, [UInt64]>) -> [Double] {
            results.map { Double($0[keyPath: path].max() ?? 0) / 1e6 }
        }
        func middle(_ path: KeyPath<Result, [UInt64]>) -> [Double] {
            results.map { medianMilliseconds($0[keyPath: path]) }
        }
        let state = "\(stateBytes / 1_000_000) MB in a \(table)"
        return [
            Row(
                "large", "\(state), another store's longest receipt meanwhile; partner: before",
                "ms", most(\.meanwhile), most(\.before)),
            Row(
                "large", "\(table), the same, p50; partner: before", "ms", middle(\.meanwhile),
                middle(\.before)),
            Row(
                "large", "\(table), longest silence of the feed meanwhile; partner: before", "ms",
                most(\.feedMeanwhile), most(\.feedBefore)),
            Row(
                "large", "\(table), until the snapshot is there", "ms",
                alone: results.map(\.snapshot)),
            Row(
                "large", "\(table), a new node; partner: reading and decoding the snapshot alone",
                "ms",
                results.map(\.join), results.map(\.decoding)),
            Row(
                "large", "\(table), memory of the node at most; partner: before", "bytes",
                results.map(\.nodeBytesMost), results.map(\.nodeBytes)),
        ]
    }

    func run(_ settings: Settings, in cluster: Cluster) throws -> Result {
        let (keeper, address, feed) = try cluster.startKeeper(
            KeeperSettings(digestBytesMin: Self.digestBytes, snapshotBytesMin: 1))
        let listener = try cluster.start(.listener(feed: feed))
        let rows = stateBytes / LedgerRow.bytes
        let writer = try cluster.start(.ledger(address: address, table))
        try writer.time(.open(Self.large))
        let node = try cluster.start(.ledger(address: address, table))
        try node.time(.open(Self.large))
        try node.time(.open(Self.small))
        let filled = try writer.time(.fill(Self.large, rows: rows)) + node.time(.barrier)
        settings.note("large, filled in \(filled / 1_000_000) ms")
        guard try keeper.kept().snapshots == 0 else { throw BenchError("a snapshot came too soon") }
        let nodeBytes = try node.memory().now

        // Before: the same load on both stores, without a digest point.
        _ = try listener.times(.silences)
        let before = try probe(node) {
            try writer.time(.write(Self.large, first: 0, count: Self.writes / 10, rows: rows))
            usleep(1_000_000)
        }
        let feedBefore = try listener.times(.silences)

        var snapshot: UInt64 = 0
        let meanwhile = try probe(node) {
            let start = monotonicNanoseconds()
            try writer.time(.write(Self.large, first: 0, count: Self.writes, rows: rows))
            // Writing continues, so that a copy of the state has to be a real one.
            while try keeper.kept().snapshots == 0 {
                try writer.time(.write(Self.large, first: 0, count: 10, rows: rows))
                usleep(10_000)
                if let failure = try keeper.kept().failures.first { throw BenchError(failure) }
            }
            snapshot = monotonicNanoseconds() - start
        }
        let feedMeanwhile = try listener.times(.silences)
        let most = try node.memory().most

        let path = cluster.path("snapshot")
        _ = try node.time(.export(Self.large, path: path))
        node.end()
        let joining = try cluster.start(.ledger(address: address, table))
        let join = try joining.time(.open(Self.large))
        joining.end()
        let decoder = try cluster.start(.decoder)
        let decoding = try decoder.time(.decodeLedger(path: path, with: .canonical, table))
        return Result(
            before: before, meanwhile: meanwhile, feedBefore: feedBefore,
            feedMeanwhile: feedMeanwhile, snapshot: Double(snapshot) / 1e6,
            join: Double(join) / 1e6, decoding: Double(decoding) / 1e6,
            nodeBytes: Double(nodeBytes), nodeBytesMost: Double(most))
    }

    /// Measures a light load on the small store while `body` runs.
    private func probe(_ node: Child, _ body: () throws -> Void) throws -> [UInt64] {
        try node.time(.beginProbe(Self.small, rows: Self.smallRows))
        try body()
        return try node.times(.endProbe)
    }
}
