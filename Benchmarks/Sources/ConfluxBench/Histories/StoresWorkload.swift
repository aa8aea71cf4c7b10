import Foundation

/// Many stores in one log, hosted by one node.
struct StoresWorkload {
    let count: Int

    /// How many of the stores are measured one by one.
    private static let sample = 100
    private static let rows = 10
    private static let writes = 20_000

    private struct Result {
        var opening: [UInt64]
        var openingLast: [UInt64]
        var roundTripAlone: Double
        var roundTrip: Double
        var writeAlone: Double
        var write: Double
        var nodeBytes: Double
        var sequencerBytes: Double
        var dropping: Double
        var checkpointBytes: Double
        var startAlone: Double
        var start: Double
    }

    func measure(_ settings: Settings) throws -> [Row] {
        var results: [Result] = []
        for round in 0..<settings.rounds {
            settings.note("stores, round \(round + 1)")
            results.append(try Cluster.run(in: settings.folder) { try run(in: $0) })
        }
        func row(
            _ name: String, _ unit: String, _ ours: (Result) -> Double,
            beside theirs: ((Result) -> Double)? = nil
        ) -> Row {
            Row("stores", name, unit, results.map(ours), theirs.map { results.map($0) } ?? [])
        }
        let state = "\(count) open"
        return [
            row(
                "opening one, the last of \(count); partner: the first ones", "ms",
                { medianMilliseconds($0.openingLast) },
                beside: { medianMilliseconds($0.opening) }),
            row("dropping one, \(state)", "ms", \.dropping),
            row(
                "one in flight, \(state), receipt p50; partner: 1 open", "ms", \.roundTrip,
                beside: \.roundTripAlone),
            row(
                "a stream to one, \(state); partner: 1 open", "µs/action", \.write,
                beside: \.writeAlone),
            row("memory of the node, a store", "bytes", \.nodeBytes),
            row("memory of the sequencer, a store", "bytes", \.sequencerBytes),
            row("checkpoint, a store", "bytes", \.checkpointBytes),
            row(
                "start of the sequencer, \(state); partner: with 1", "ms", \.start,
                beside: \.startAlone),
        ]
    }

    private func run(in cluster: Cluster) throws -> Result {
        let alone = try start(in: cluster, log: "alone")
        let (keeper, node) = try begin(in: cluster, log: "many")
        let opening = try node.times(.openMany(first: 1, count: Self.sample))
        let (tripAlone, writeAlone) = try act(node)
        let before = (try node.memory().now, try keeper.memory().now)
        _ = try node.times(.openMany(first: Self.sample + 1, count: count - Self.sample))
        let last = try node.times(.openMany(first: count + 1, count: Self.sample))
        let after = (try node.memory().now, try keeper.memory().now)
        let (trip, write) = try act(node)
        let dropping = try node.times(.drop(first: count + 1, count: Self.sample))
        func aStore(_ after: UInt64, _ before: UInt64) -> Double {
            (Double(after) - Double(before)) / Double(count)
        }
        let kept = try checkpoint(keeper, node)
        let started = try restart(keeper, node, in: cluster, log: "many")
        return Result(
            opening: opening, openingLast: last, roundTripAlone: tripAlone, roundTrip: trip,
            writeAlone: writeAlone, write: write, nodeBytes: aStore(after.0, before.0),
            sequencerBytes: aStore(after.1, before.1), dropping: medianMilliseconds(dropping),
            checkpointBytes: Double(kept.checkpointBytes) / Double(count), startAlone: alone,
            start: started)
    }

    /// Starts a sequencer, and a node that has opened one store.
    private func begin(
        in cluster: Cluster, log: String
    ) throws -> (keeper: Child, node: Child) {
        let (keeper, address, _) = try cluster.startKeeper(
            KeeperSettings(checkpointBytes: 1 << 20), log: log)
        let node = try cluster.start(.ledger(address: address))
        try node.time(.open("s0"))
        return (keeper, node)
    }

    /// The time for actions on one store: with one in flight, and as a stream.
    private func act(_ node: Child) throws -> (milliseconds: Double, microseconds: Double) {
        let order = Order.roundTrips("s0", count: 500, rows: Self.rows)
        _ = try node.times(order)
        let trips = try node.times(order)
        let took = try node.time(.write("s0", first: 0, count: Self.writes, rows: Self.rows))
        return (medianMilliseconds(trips), Double(took) / 1_000 / Double(Self.writes))
    }

    /// Writes until there is a checkpoint of everything.
    private func checkpoint(_ keeper: Child, _ node: Child) throws -> Kept {
        let goal = try keeper.kept().checkpoints + 2
        while true {
            let kept = try keeper.kept()
            if kept.checkpoints >= goal { return kept }
            try node.time(.write("s0", first: 0, count: 2_000, rows: Self.rows))
        }
    }

    /// Measures how long a sequencer takes to start with the log.
    private func restart(
        _ keeper: Child, _ node: Child, in cluster: Cluster, log: String
    ) throws -> Double {
        node.end()
        keeper.end()
        let keeper = try cluster.startKeeper(KeeperSettings(), log: log).child
        defer { keeper.end() }
        return Double(try keeper.kept().started) / 1e6
    }

    /// Measures how long that takes with one store.
    private func start(in cluster: Cluster, log: String) throws -> Double {
        let (keeper, node) = try begin(in: cluster, log: log)
        _ = try act(node)
        _ = try checkpoint(keeper, node)
        return try restart(keeper, node, in: cluster, log: log)
    }
}
