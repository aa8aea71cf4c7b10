import Foundation

/// What a kind of connection costs or saves: a stream of one producer to one replica, and one action in flight,
/// beside the same over plain TCP.
struct ConnectionWorkload {
    /// The kind of connection.
    enum Kind: String {
        case keys
        case ipc

        var partner: String {
            switch self {
            case .keys: "without keys"
            case .ipc: "TCP"
            }
        }
    }

    let kind: Kind
    let streamCount: Int
    let latencyCount: Int

    private struct Result {
        /// Actions a second, until the replica had the last one.
        var rate = 0.0
        /// Processor time of the sequencer, in microseconds an action.
        var cost = 0.0
        var receipt: [UInt64] = []
    }

    func measure(_ settings: Settings) throws -> [Row] {
        var results: [Side: [Result]] = [:]
        for round in 0..<settings.rounds {
            for side in settings.sides(of: round) {
                settings.note(
                    "\(kind.rawValue), round \(round + 1)"
                        + (side == .conflux ? "" : ", \(kind.partner)"))
                var result = Result()
                try Cluster.run(in: settings.folder) { try stream(side, in: $0, &result) }
                try Cluster.run(in: settings.folder) { try roundTrips(side, in: $0, &result) }
                results[side, default: []].append(result)
            }
        }
        func row(
            _ what: String, _ unit: String, isHigherBetter: Bool = false,
            _ figure: (Result) -> Double
        ) -> Row {
            Row(
                kind.rawValue, "\(what); partner: \(kind.partner)", unit,
                (results[.conflux] ?? []).map(figure), (results[.partner] ?? []).map(figure),
                isHigherBetter: isHigherBetter)
        }
        return [
            row("P1 R1 fsync", "actions/s", isHigherBetter: true) { $0.rate },
            row("P1 R1 fsync, sequencer", "CPU µs/action") { $0.cost },
            row("one in flight, receipt p50", "µs") { percentile(0.5, of: $0.receipt) / 1_000 },
            row("one in flight, receipt p99", "µs") { percentile(0.99, of: $0.receipt) / 1_000 },
        ]
    }

    /// A sequencer, and where its one key, or anybody, connects.
    private func start(_ side: Side, in cluster: Cluster) throws -> (Child, Place) {
        let keys = side == .conflux && kind == .keys ? KeyRing(["node": "all"]) : nil
        let bind =
            side == .conflux && kind == .ipc
            ? "ipc://\(cluster.path("sequencer"))" : Cluster.loopback
        let (sequencer, addresses) = try cluster.startSequencer(
            .conflux, .fsync, zeroedBytes: 0, subscribers: 1, bind: bind, keys: keys)
        try sequencer.awaitReady()
        return (sequencer, try keys?.place(addresses[0], as: "node") ?? Place(addresses[0]))
    }

    private func stream(_ side: Side, in cluster: Cluster, _ result: inout Result) throws {
        let (sequencer, place) = try start(side, in: cluster)
        let replica = try cluster.start(.replica(at: place, count: streamCount))
        let producer = try cluster.start(.producer(at: place, producer: 0, count: streamCount))
        for child in [replica, producer] { try child.awaitReady() }
        let usedBefore = try sequencer.usedProcessorNanoseconds()
        try producer.go()
        guard case .produced(let start, _, _) = try producer.next(),
            case .replicated(let sighting) = try replica.next()
        else { throw BenchError("a node told something else") }
        guard sighting.count == UInt64(streamCount), sighting.disorders == 0 else {
            throw BenchError("the order is broken: \(sighting)")
        }
        let used = try sequencer.usedProcessorNanoseconds() - usedBefore
        result.rate = Double(streamCount) / (Double(sighting.end - start) / 1e9)
        result.cost = Double(used) / 1_000 / Double(streamCount)
    }

    private func roundTrips(_ side: Side, in cluster: Cluster, _ result: inout Result) throws {
        let (_, place) = try start(side, in: cluster)
        let client = try cluster.start(.roundTrips(at: place, count: latencyCount))
        try client.awaitReady()
        try client.go()
        guard case .roundTrips(_, let receipt) = try client.next() else {
            throw BenchError("the node told something else")
        }
        result.receipt = receipt.sorted()
    }
}
