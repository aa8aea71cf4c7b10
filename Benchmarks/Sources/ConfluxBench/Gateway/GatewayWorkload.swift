import Foundation

/// A gateway: how fast one subscriber gets small changes, beside plain PUB and SUB with the same parts; how many actions
/// are dispatched by DEALER; and one request by REQ, beside a node's own action.
struct GatewayWorkload {
    let streamCount: Int
    let latencyCount: Int

    /// The state that is published.
    private enum Published: CaseIterable {
        /// With a coding by hand, by a gateway of its own.
        case hand
        /// That of `conflux gateway`, in JSON by `Codable`.
        case counter

        var what: String { self == .hand ? "coding by hand" : "JSON by Codable" }
        var topic: String { self == .hand ? GatewayRoles.handTopic : GatewayRoles.topic }
    }

    /// How many requests of a DEALER have no answer.
    private static let window = 4_096

    func measure(_ settings: Settings) throws -> [Row] {
        var rates: [Published: [Double]] = [:]
        var plain: [Double] = []
        var dispatched: [Double] = []
        var times: [Durability: [Side: [[UInt64]]]] = [:]
        for round in 0..<settings.rounds {
            for side in settings.sides(of: round) {
                settings.note("gateway, round \(round + 1), \(side)")
                if side == .conflux {
                    for state in Published.allCases {
                        try Cluster.run(in: settings.folder) {
                            rates[state, default: []].append(try publish(state, in: $0))
                        }
                    }
                } else {
                    try Cluster.run(in: settings.folder) {
                        plain.append(try publishPlainly(in: $0))
                    }
                }
                for durability in Durability.allCases {
                    try Cluster.run(in: settings.folder) {
                        times[durability, default: [:]][side, default: []].append(
                            try roundTrips(side, durability, in: $0))
                    }
                }
            }
            try Cluster.run(in: settings.folder) { dispatched.append(try dispatch(in: $0)) }
        }
        let rows =
            Published.allCases.map {
                Row(
                    "gateway",
                    "1 subscriber, small changes, \($0.what); partner: plain PUB and SUB, same parts",
                    "actions/s", rates[$0] ?? [], plain, isHigherBetter: true)
            } + [
                Row(
                    "gateway", "dispatch by DEALER, \(Self.window) in flight, memory", "actions/s",
                    alone: dispatched)
            ]
        return rows
            + Durability.allCases.flatMap { durability in
                [(0.5, "p50"), (0.99, "p99")].map { share, rank in
                    func figures(_ side: Side) -> [Double] {
                        (times[durability]?[side] ?? []).map { percentile(share, of: $0) / 1_000 }
                    }
                    return Row(
                        "gateway",
                        "REQ, \(durability.rawValue), receipt \(rank); partner: a node's own action",
                        "µs", figures(.conflux), figures(.partner))
                }
            }
    }

    private func withGateway<Result>(
        _ durability: Durability, _ state: Published = .counter, in cluster: Cluster,
        _ body: (String, ConfluxProgram) throws -> Result
    ) throws -> Result {
        let (sequencer, addresses) = try cluster.startSequencer(
            .conflux, durability, zeroedBytes: 0, subscribers: 1)
        try sequencer.awaitReady()
        let options = ["--connect", addresses[0], "--publish", Cluster.loopback]
        let gateway =
            state == .hand
            ? try ConfluxProgram(as: GatewayRoles.programVariable, options)
            : try ConfluxProgram(
                ["gateway", "--store", "counter", "--ask", Cluster.loopback] + options)
        defer { gateway.end() }
        return try body(addresses[0], gateway)
    }

    private func publishPlainly(in cluster: Cluster) throws -> Double {
        let publisher = try cluster.start(.publisher(count: streamCount))
        guard case .listening(let addresses) = try publisher.next() else {
            throw BenchError("the publisher does not listen")
        }
        let follower = try cluster.start(
            .follower(
                address: addresses[0], topic: GatewayRoles.topic, isGateway: false,
                count: streamCount))
        try publisher.awaitReady()
        try publisher.go()
        return try rate(of: follower)
    }

    private func publish(_ state: Published, in cluster: Cluster) throws -> Double {
        try withGateway(.memory, state, in: cluster) { address, gateway in
            let follower = try cluster.start(
                .follower(
                    address: gateway.address("publish"), topic: state.topic, isGateway: true,
                    count: streamCount))
            try follower.awaitReady()
            let producer = try cluster.start(
                .counter(at: Place(address), count: streamCount, isByHand: state == .hand))
            try producer.awaitReady()
            try producer.go()
            return try rate(of: follower)
        }
    }

    private func rate(of follower: Child) throws -> Double {
        guard case .times(let times) = try follower.next(), times.count == 3 else {
            throw BenchError("the subscriber told something else")
        }
        return Double(streamCount) / (Double(times[1] - times[0]) / 1e9)
    }

    private func dispatch(in cluster: Cluster) throws -> Double {
        try withGateway(.memory, in: cluster) { _, gateway in
            let asker = try cluster.start(
                .asker(
                    address: gateway.address("ask"), count: streamCount, window: Self.window))
            try asker.awaitReady()
            try asker.go()
            guard case .times(let times) = try asker.next(), times.count == 1 else {
                throw BenchError("the asker told something else")
            }
            return Double(streamCount) / (Double(times[0]) / 1e9)
        }
    }

    private func roundTrips(
        _ side: Side, _ durability: Durability, in cluster: Cluster
    ) throws -> [UInt64] {
        try withGateway(durability, in: cluster) { address, gateway in
            let client = try cluster.start(
                side == .conflux
                    ? .asker(address: gateway.address("ask"), count: latencyCount, window: 1)
                    : .roundTrips(at: Place(address), count: latencyCount))
            try client.awaitReady()
            try client.go()
            switch try client.next() {
            case .times(let times): return times.sorted()
            case .roundTrips(_, let receipt): return receipt.sorted()
            default: throw BenchError("the client told something else")
            }
        }
    }
}
