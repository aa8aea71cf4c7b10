import ConfluxEtcd
import ConfluxLog
import Foundation

#if ETCD
    import CEtcdPartner
#endif

/// Appends to a log on etcd, one after the other, compared with the same transactions by gRPC in C++: with one member,
/// and with three.
struct EtcdWorkload {
    let count: Int

    /// The bytes of a commit, and the part of the appends: `count / share` of them are made with it.
    private static let shapes = [
        (name: "one action of 100 B", bytes: 100, share: 1),
        (name: "64 actions packed, 6.4 kB", bytes: 6_400, share: 1),
        (name: "256 KiB packed", bytes: 256 << 10, share: 8),
    ]

    func measure(_ settings: Settings) throws -> [Row] {
        var rows: [Row] = []
        for members in [1, 3] {
            for shape in Self.shapes {
                let count = count / shape.share
                var ours: [[UInt64]] = []
                var theirs: [[UInt64]] = []
                for round in 0..<settings.rounds {
                    settings.note("etcd, \(members) members, \(shape.name), round \(round + 1)")
                    let servers = try EtcdServers(members, in: settings.folder)
                    do {
                        let turns = [
                            { ours.append(try append(count, shape.bytes, to: servers)) },
                            { theirs.append(try partner(count, shape.bytes, to: servers)) },
                        ]
                        for turn in round % 2 == 0 ? turns : turns.reversed() { try turn() }
                        try servers.end()
                    } catch {
                        try servers.end()
                        throw error
                    }
                }
                let name = "\(shape.name), \(members == 1 ? "1 member" : "\(members) members")"
                rows.append(
                    Row(
                        "etcd", "\(name): appends", "1/s", ours.map(rate), theirs.map(rate),
                        isHigherBetter: true))
                for (share, rank) in [(0.5, "p50"), (0.99, "p99")] {
                    func time(_ times: [UInt64]) -> Double {
                        percentile(share, of: times.sorted()) / 1_000
                    }
                    rows.append(
                        Row("etcd", "\(name): \(rank)", "µs", ours.map(time), theirs.map(time)))
                }
            }
        }
        return rows
    }

    private func rate(_ times: [UInt64]) -> Double {
        Double(times.count) / (Double(times.reduce(0, +)) / 1e9)
    }

    private func append(_ count: Int, _ bytes: Int, to servers: EtcdServers) throws -> [UInt64] {
        let text = "etcd://\(servers.addresses[0])/conflux"
        guard let address = EtcdAddress(text) else { throw BenchError("no address: \(text)") }
        let log = try EtcdLog(EtcdLogSettings(address: address))
        defer { log.close() }
        let epoch = try log.claim().epoch
        let contents = [UInt8](repeating: 120, count: bytes)[...]
        return try (0..<count).map { _ in
            let begun = ContinuousClock.now
            let commit = LoggedCommit(
                first: log.last.next, last: log.last.next, epoch: epoch, bytes: contents)
            try log.append(commit, expecting: log.last, forced: false)
            return UInt64((ContinuousClock.now - begun) / .nanoseconds(1))
        }
    }

    private func partner(_ count: Int, _ bytes: Int, to servers: EtcdServers) throws -> [UInt64] {
        #if ETCD
            var times = [UInt64](repeating: 0, count: count)
            let failure = etcd_partner_append(
                servers.addresses[0], "/partner", UInt64(count), bytes, &times)
            if let failure { throw BenchError("gRPC: \(String(cString: failure))") }
            return times
        #else
            throw BenchError("built without gRPC; run script/bench etcd")
        #endif
    }
}
