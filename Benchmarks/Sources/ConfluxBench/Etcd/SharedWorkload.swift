import Foundation

/// A stream, one action in flight and a failover, with the log on etcd of three members, beside a log on one disk.
struct SharedWorkload {
    let streamCount: Int
    let latencyCount: Int

    private struct Result {
        /// Actions a second, until the replica had the last one.
        var rate = 0.0
        var applied: [UInt64] = []
        /// From the kill of the sequencer until the receipt of an action, in nanoseconds; nil without a standby.
        var failover: UInt64?
    }

    func measure(_ settings: Settings) throws -> [Row] {
        var results: [Side: [Result]] = [:]
        for round in 0..<settings.rounds {
            for side in settings.sides(of: round) {
                settings.note("shared, round \(round + 1), \(side == .conflux ? "etcd" : "disk")")
                results[side, default: []].append(
                    side == .conflux ? try onEtcd(settings) : try onDisk(settings))
            }
        }
        func row(
            _ what: String, _ unit: String, isHigherBetter: Bool = false,
            _ figure: (Result) -> Double
        ) -> Row {
            Row(
                "shared", "\(what), log on 3 members of etcd; partner: a log on one disk", unit,
                (results[.conflux] ?? []).map(figure), (results[.partner] ?? []).map(figure),
                isHigherBetter: isHigherBetter)
        }
        return [
            row("P1 R1", "actions/s", isHigherBetter: true) { $0.rate },
            row("one in flight, applied p50", "µs") { percentile(0.5, of: $0.applied) / 1_000 },
            row("one in flight, applied p99", "µs") { percentile(0.99, of: $0.applied) / 1_000 },
            Row(
                "shared", "an action while the sequencer is killed, until its receipt", "ms",
                alone: (results[.conflux] ?? []).compactMap { $0.failover.map { Double($0) / 1e6 } }
            ),
        ]
    }

    private func onEtcd(_ settings: Settings) throws -> Result {
        let servers = try EtcdServers(3, in: settings.folder)
        defer { end(servers, settings) }
        let log = "etcd://\(servers.addresses.joined(separator: ","))/conflux"
        var result = Result()
        try Cluster.run(in: settings.folder) { cluster in
            let (first, address) = try start(cluster, log)
            try first.awaitReady()
            let (second, standby) = try start(cluster, log)
            try second.awaitReady()
            let place = Place("\(address),\(standby)")
            try measure(place, in: cluster, &result)
            let node = try cluster.start(.failover(at: place))
            try node.awaitReady()
            first.end()
            try node.go()
            guard case .took(let time) = try node.next() else {
                throw BenchError("the node told something else")
            }
            result.failover = time
        }
        return result
    }

    private func end(_ servers: EtcdServers, _ settings: Settings) {
        do {
            try servers.end()
        } catch {
            settings.note("files of etcd are left: \(error)")
        }
    }

    /// Starts a sequencer of the log, and waits until it has its address.
    private func start(_ cluster: Cluster, _ log: String) throws -> (Child, String) {
        let child = try cluster.start(.sharedSequencer(log: log))
        guard case .listening(let addresses) = try child.next() else {
            throw BenchError("the sequencer does not listen")
        }
        return (child, addresses[0])
    }

    private func onDisk(_ settings: Settings) throws -> Result {
        var result = Result()
        try Cluster.run(in: settings.folder) { cluster in
            let (sequencer, addresses) = try cluster.startSequencer(
                .conflux, .fsync, zeroedBytes: 0, subscribers: 1)
            try sequencer.awaitReady()
            try measure(Place(addresses[0]), in: cluster, &result)
        }
        return result
    }

    private func measure(_ place: Place, in cluster: Cluster, _ result: inout Result) throws {
        let stream = StreamWorkload(
            producers: 1, replicas: 1, durability: .fsync, count: streamCount)
        let replica = try cluster.start(.replica(at: place, count: streamCount))
        let producer = try cluster.start(.producer(at: place, producer: 0, count: streamCount))
        result.rate = try stream.rate(
            StreamWorkload.Cast(sequencer: nil, watching: [replica], sending: [producer]))
        for child in [replica, producer] { child.end() }
        let latency = LatencyWorkload(durability: .fsync, zeroedBytes: 0, count: latencyCount)
        result.applied = try latency.times(
            of: cluster.start(.roundTrips(at: place, count: latencyCount))
        ).applied
    }
}
