import Foundation

/// One action in flight, and many, by an ordinary node of a sequencer with keys, while peers do what costs
/// the sequencer most: the time until the receipt, compared with the time without such peers, and with the time
/// beside equally busy processors. The log is in memory, since this is about processors and queues, not the disk.
struct HostileWorkload {
    let count: Int

    private static let inFlight = 256
    /// The number of connections that send their handshake byte by byte.
    private static let lorisCount = 400
    private static let idleCount = 1_000
    private static let idleKeys = (0..<10).map { "idle-\($0)" }
    private static let floodCount = 16
    /// The most memory in MiB that connections can make the sequencer use, according to docs/bounds.md.
    private static let memoryBoundMax = 660.0

    /// What happens beside the measured node.
    private enum Company: String, CaseIterable {
        case none = "nobody else"
        case noneForLong = "nobody else, as long"
        /// Threads that keep the processors busy with useless work.
        case busy = "as many busy processors"
        case loris = "400 connections dribble"
        case idle = "1,000 connections of authorised keys stand"
        case subscribers = "1,000 more subscribe and read"
        case flood = "a key floods with all it may, for half a minute"

        /// The microseconds before the measurement begins: the sequencer bars a key that floods within the first
        /// seconds, and then again after 1, 4, 16 seconds and more.
        var lead: UInt32 { self == .flood ? 6_000_000 : 0 }
        /// The factor for the number of measured actions.
        var factor: Int { self == .flood || self == .noneForLong ? 40 : 1 }
        /// The cases with which it is compared.
        var partners: [Company] { self == .flood ? [.noneForLong, .busy] : [.none, .busy] }
    }

    func measure(_ settings: Settings) throws -> [Row] {
        var memory: [Double] = []
        let shapes = [(1, 1, "one in flight"), (Self.inFlight, 20, "\(Self.inFlight) in flight")]
        let measured = try shapes.flatMap { inFlight, factor, what in
            var times: [Company: [[UInt64]]] = [:]
            for round in 0..<settings.rounds {
                settings.note("hostile, \(what), round \(round + 1)")
                let order = Company.allCases
                let first = round % order.count
                let (result, bytes) = try Cluster.run(in: settings.folder) { cluster in
                    try run(
                        in: cluster, count: count * factor, inFlight: inFlight,
                        Array(order[first...] + order[..<first]))
                }
                for (company, sorted) in result { times[company, default: []].append(sorted) }
                memory.append(Double(bytes) / Double(1 << 20))
            }
            return rows(what, times)
        }
        return measured + [
            Row(
                "hostile", "memory of the sequencer at most; partner: its bound", "MiB", memory,
                memory.map { _ in Self.memoryBoundMax })
        ]
    }

    private func rows(_ what: String, _ times: [Company: [[UInt64]]]) -> [Row] {
        Company.allCases.dropFirst(3).flatMap { company in
            [(0.5, "p50"), (0.99, "p99")].flatMap { share, rank in
                company.partners.map { partner in
                    func figures(_ company: Company) -> [Double] {
                        (times[company] ?? []).map { percentile(share, of: $0) / 1_000 }
                    }
                    return Row(
                        "hostile",
                        "\(company.rawValue); \(what), receipt \(rank); partner: "
                            + partner.rawValue,
                        "µs", figures(company), figures(partner))
                }
            }
        }
    }

    /// Measures all cases on one sequencer, one after the other.
    ///
    /// - Returns: The times, and the most memory that the sequencer used.
    private func run(
        in cluster: Cluster, count: Int, inFlight: Int, _ order: [Company]
    ) throws -> ([Company: [UInt64]], UInt64) {
        var rights = ["node": "all"]
        for key in Self.idleKeys { rights[key] = "observe" }
        let flooded = HostileRoles.floodedState
        rights["flood"] =
            "dispatch=\(flooded) host=\(flooded) observe rate=500/s payload-max=4KiB"
        let keys = KeyRing(rights)
        let (sequencer, addresses) = try cluster.startSequencer(
            .conflux, .memory, zeroedBytes: 0, subscribers: 1, keys: keys)
        try sequencer.awaitReady()
        var result: [Company: [UInt64]] = [:]
        for company in order {
            let others = try start(company, in: cluster, addresses, keys)
            usleep(company.lead)
            let client = try cluster.start(
                .receipts(
                    at: try keys.place(addresses[0], as: "node"), count: count * company.factor,
                    inFlight: inFlight))
            try client.awaitReady()
            try client.go()
            guard case .times(let times) = try client.next() else {
                throw BenchError("the node told something else")
            }
            others?.end()
            result[company] = times.sorted()
        }
        return (result, try sequencer.memoryMost())
    }

    private func start(
        _ company: Company, in cluster: Cluster, _ addresses: [String], _ keys: KeyRing
    ) throws -> Child? {
        let role: Role
        switch company {
        case .none, .noneForLong: return nil
        case .busy:
            return try cluster.start(.busy(threads: ProcessInfo.processInfo.activeProcessorCount))
        case .loris: role = .loris(addresses: addresses, count: Self.lorisCount)
        case .idle, .subscribers:
            role = .idle(
                places: try Self.idleKeys.map { try keys.place(addresses[0], as: $0) },
                feed: company == .subscribers ? addresses[1] : nil, count: Self.idleCount)
        case .flood:
            role = .flood(
                at: try keys.place(addresses[0], as: "flood"), feed: addresses[1],
                count: Self.floodCount)
        }
        let others = try cluster.start(role)
        try others.awaitReady()
        return others
    }
}
