import Foundation

/// One small action each 25 ms, until the last of many subscribers has it: through relays, beside the sequencer alone.
struct RelaysWorkload {
    let count: Int

    private struct Shape: Hashable {
        let subscribers: Int
        let relays: Int
    }

    private struct Result {
        /// Processor time of the sequencer, in microseconds an action.
        var cost: Double
        var times: [UInt64]
    }

    private static let subscribers = [1, 100, 1_000]
    private static let relays = [0, 1, 4, 16]

    func measure(_ settings: Settings) throws -> [Row] {
        var results: [Shape: [Result]] = [:]
        for round in 0..<settings.rounds {
            for subscribers in Self.subscribers {
                for relays in round.isMultiple(of: 2) ? Self.relays : Self.relays.reversed() {
                    settings.note("relays, round \(round + 1), \(relays) for \(subscribers)")
                    let shape = Shape(subscribers: subscribers, relays: relays)
                    let result = try Cluster.run(in: settings.folder) { try run(shape, in: $0) }
                    results[shape, default: []].append(result)
                }
            }
        }
        return Self.subscribers.flatMap { subscribers in
            Self.relays.flatMap { relays in
                func figures(_ relays: Int, _ figure: (Result) -> Double) -> [Double] {
                    (results[Shape(subscribers: subscribers, relays: relays)] ?? []).map(figure)
                }
                func row(_ what: String, _ unit: String, _ figure: (Result) -> Double) -> Row {
                    Row(
                        "relays",
                        "\(subscribers) subscribers, \(relays) relays; \(what); partner: no relay",
                        unit, figures(relays, figure), relays == 0 ? [] : figures(0, figure))
                }
                return [
                    row("sequencer", "CPU µs/action") { $0.cost },
                    row("last subscriber p50", "µs") { percentile(0.5, of: $0.times) / 1_000 },
                    row("last subscriber p99", "µs") { percentile(0.99, of: $0.times) / 1_000 },
                ]
            }
        }
    }

    private func run(_ shape: Shape, in cluster: Cluster) throws -> Result {
        let (sequencer, addresses) = try cluster.startSequencer(
            .conflux, .memory, zeroedBytes: 0, subscribers: 1)
        try sequencer.awaitReady()
        let relays = try (0..<shape.relays).map { _ in
            try ConfluxProgram("relay", "--feed", addresses[1], "--bind", Cluster.loopback)
        }
        defer { for relay in relays { relay.end() } }
        let client = try cluster.start(
            .audience(
                at: Place(addresses[0]),
                feeds: relays.isEmpty
                    ? [addresses[1]] : try relays.map { try $0.address("address") },
                subscribers: shape.subscribers, count: count))
        try client.awaitReady()
        let usedBefore = try sequencer.usedProcessorNanoseconds()
        try client.go()
        guard case .times(let times) = try client.next() else {
            throw BenchError("the node told something else")
        }
        let used = try sequencer.usedProcessorNanoseconds() - usedBefore
        return Result(cost: Double(used) / 1_000 / Double(count), times: times.sorted())
    }
}
