import Foundation

/// A stream of actions, and one action in flight, while many observers read the log from its
/// beginning: until the receipt, beside the same without them. The observers are one process, of the
/// lowest priority, since they would have processors of their own.
struct ReadersWorkload {
    /// How many observers read at once. Each begins anew when it is at the end.
    let readers: Int
    /// How many actions the log has beforehand.
    let history: Int
    let count: Int

    /// How many actions of the stream are in flight.
    private static let inFlight = 256

    /// What else goes on.
    private enum Company: CaseIterable {
        case none
        case readers
        /// Threads that keep the processors as busy as readers do, with nothing.
        case busy
    }

    func measure(_ settings: Settings) throws -> [Row] {
        try [(1, 1, "one in flight"), (Self.inFlight, 100, "\(Self.inFlight) in flight")]
            .flatMap { inFlight, factor, what in
                var times: [Company: [[UInt64]]] = [:]
                for round in 0..<settings.rounds {
                    settings.note("readers, \(what), round \(round + 1)")
                    let order = Company.allCases.map { $0 }
                    let turned = order[(round % 3)...] + order[..<(round % 3)]
                    let result = try Cluster.run(in: settings.folder) { cluster in
                        try run(
                            in: cluster, count: count * factor, inFlight: inFlight,
                            Array(turned))
                    }
                    for (company, sorted) in result { times[company, default: []].append(sorted) }
                }
                return [(0.5, "p50"), (0.99, "p99")].flatMap { share, rank in
                    [(Company.none, "no readers"), (.busy, "as many busy processors")].map {
                        partner, whom in
                        func figures(_ company: Company) -> [Double] {
                            (times[company] ?? []).map { percentile(share, of: $0) / 1_000 }
                        }
                        return Row(
                            "readers",
                            "\(readers) read from 1; \(what), receipt \(rank); partner: \(whom)",
                            "µs", figures(.readers), figures(partner))
                    }
                }
            }
    }

    /// All are measured on one sequencer, one after the other.
    private func run(
        in cluster: Cluster, count: Int, inFlight: Int, _ order: [Company]
    ) throws -> [Company: [UInt64]] {
        let (sequencer, addresses) = try cluster.startSequencer(
            .conflux, .fsync, zeroedBytes: 0, subscribers: 1)
        try sequencer.awaitReady()
        let producer = try cluster.start(
            .producer(at: Place(addresses[0]), producer: 0, count: history))
        try producer.awaitReady()
        try producer.go()
        guard case .produced = try producer.next() else {
            throw BenchError("the producer told something else")
        }
        var result: [Company: [UInt64]] = [:]
        for company in order {
            var others: Child?
            switch company {
            case .none: break
            case .readers:
                others = try cluster.start(.readers(address: addresses[0], count: readers))
                try others?.awaitReady()
            case .busy:
                let threads = ProcessInfo.processInfo.activeProcessorCount
                others = try cluster.start(.busy(threads: threads))
            }
            let client = try cluster.start(
                .receipts(at: Place(addresses[0]), count: count, inFlight: inFlight))
            try client.awaitReady()
            try client.go()
            guard case .times(let times) = try client.next() else {
                throw BenchError("the node told something else")
            }
            others?.end()
            result[company] = times.sorted()
        }
        return result
    }
}
