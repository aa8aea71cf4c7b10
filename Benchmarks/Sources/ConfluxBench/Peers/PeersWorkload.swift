import Foundation

/// The stream and one action in flight, compared with third-party servers and with the limit of libzmq. Each
/// round measures all of them.
struct PeersWorkload {
    let streamCount: Int
    let latencyCount: Int

    private static let packed = 64
    private static let shapes = [(1, 1), (1, 3), (4, 3)]

    func measure(_ settings: Settings, _ deliver: ([Row]) throws -> Void) throws {
        guard PeerRoles.arePlayed else {
            throw BenchError("built without peers; run script/bench --peers")
        }
        let kinds = try PeerKind.allCases.filter { kind in
            let obstacle = try PeerServer.obstacle(to: kind)
            if let obstacle { settings.note("\(obstacle): left out") }
            return obstacle == nil
        }
        for (producers, replicas) in Self.shapes {
            let stream = StreamWorkload(
                producers: producers, replicas: replicas, durability: .fsync, count: streamCount)
            let rivals =
                [64, 1_024].map { Rival.partner(frameActions: $0) }
                + kinds.flatMap { kind in
                    [1, Self.packed].map { Rival.peer(kind, entryActions: $0) }
                }
            let rates = try rounds(settings, "stream \(stream.name)", rivals) { rival, cluster in
                var stream = stream
                stream.count /= rival.slowness
                return try stream.rate(try rival.cast(stream, in: cluster))
            }
            try deliver(
                rows("\(stream.name)", "actions/s", rivals, rates, isHigherBetter: true) { $0 })
        }
        let latency = LatencyWorkload(
            durability: .fsync, zeroedBytes: 16 << 20, count: latencyCount)
        let rivals =
            [Rival.partner(frameActions: 64)] + kinds.map { .peer($0, entryActions: 1) }
        let times = try rounds(settings, "latency \(Durability.fsync)", rivals) { rival, cluster in
            try roundTrips(rival, latency, in: cluster)
        }
        for (share, rank) in [(0.5, "p50"), (0.99, "p99")] {
            try deliver(
                rows("one in flight, fsync, applied \(rank)", "µs", rivals, times) {
                    percentile(share, of: $0) / 1_000
                })
        }
    }

    /// Measures all rivals with the same work, in another order in each round.
    private func rounds<Result>(
        _ settings: Settings, _ what: String, _ rivals: [Rival],
        _ body: (Rival, Cluster) throws -> Result
    ) throws -> [Rival: [Result]] {
        var results: [Rival: [Result]] = [:]
        let all = [.conflux] + rivals
        for round in 0..<settings.rounds {
            let first = round % all.count
            for rival in all[first...] + all[..<first] {
                settings.note("peers, \(what), round \(round + 1), \(rival)")
                results[rival, default: []].append(
                    try Cluster.run(in: settings.folder) { try body(rival, $0) })
            }
        }
        return results
    }

    private func rows<Result>(
        _ what: String, _ unit: String, _ rivals: [Rival], _ results: [Rival: [Result]],
        isHigherBetter: Bool = false, _ figure: (Result) -> Double
    ) -> [Row] {
        let ours = (results[.conflux] ?? []).map(figure)
        return rivals.map { rival in
            Row(
                "peers", "\(what); partner: \(rival)", unit, ours,
                (results[rival] ?? []).map(figure), isHigherBetter: isHigherBetter)
        }
    }

    /// The sorted times of one action in flight, until it was applied or delivered.
    private func roundTrips(
        _ rival: Rival, _ latency: LatencyWorkload, in cluster: Cluster
    ) throws -> [UInt64] {
        switch rival {
        case .conflux: return try latency.run(.conflux, in: cluster).applied
        case .partner: return try latency.run(.partner, in: cluster).applied
        case .peer(let kind, _):
            let place = try cluster.startServer(kind)
            return try latency.times(
                of: cluster.start(.peerRoundTrips(at: place, count: latency.count))
            ).applied
        }
    }
}
