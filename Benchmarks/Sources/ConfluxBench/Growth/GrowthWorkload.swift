import Foundation

/// How throughput and latency grow with the size of a system. If they are recorded, `script/figures/generate` draws each
/// curve as a picture.
struct GrowthWorkload {
    let isFull: Bool

    func measure(_ settings: Settings, _ deliver: ([Row]) throws -> Void) throws {
        for curve in [
            replicas, producers, payload, history, states, stores, sessions,
        ] as [(Settings) throws -> Curve] {
            try deliver(curve(settings).rows)
        }
    }

    /// Calls a function for each value, in each round.
    private func rounds(
        _ settings: Settings, _ name: String, _ values: [Int], _ body: (Int) throws -> Void
    ) throws {
        for round in 0..<settings.rounds {
            for value in round.isMultiple(of: 2) ? values : values.reversed() {
                settings.note("growth, \(name) \(value), round \(round + 1)")
                try body(value)
            }
        }
    }

    // MARK: Streams

    private var streamCount: Int { isFull ? 300_000 : 100_000 }

    /// The rivals that stream: Conflux, plain libzmq, and the servers that are installed.
    private func rivals() throws -> [Rival] {
        try [.conflux, .partner(frameActions: 64)]
            + Rival.installedPeers().map { .peer($0, entryActions: 1) }
    }

    private func replicas(_ settings: Settings) throws -> Curve {
        var curve = Curve(
            "One producer, several replicas, with fsync", over: "replicas", "actions/s")
        try rounds(settings, "replicas", isFull ? [1, 2, 4, 8, 16] : [1, 4, 16]) { count in
            try addStreams(settings, &curve, producers: 1, replicas: count, at: count)
        }
        return curve
    }

    private func producers(_ settings: Settings) throws -> Curve {
        var curve = Curve(
            "Several producers, one replica, with fsync", over: "producers",
            "actions/s")
        try rounds(settings, "producers", isFull ? [1, 2, 4, 8, 16] : [1, 4, 16]) { count in
            try addStreams(settings, &curve, producers: count, replicas: 1, at: count)
        }
        return curve
    }

    private func addStreams(
        _ settings: Settings, _ curve: inout Curve, producers: Int, replicas: Int, at x: Int
    ) throws {
        for rival in try rivals() {
            let stream = StreamWorkload(
                producers: producers, replicas: replicas, durability: .fsync,
                count: streamCount / rival.slowness, form: .data)
            let rate = try Cluster.run(in: settings.folder) {
                try stream.rate(try rival.cast(stream, in: $0))
            }
            curve.add(rate, of: rival.name, at: x)
        }
    }

    private func payload(_ settings: Settings) throws -> Curve {
        var curve = Curve(
            "One producer, one replica, with fsync", over: "bytes an action", "actions/s")
        let sizes =
            isFull ? [16, 64, 256, 1 << 10, 1 << 12, 1 << 14, 1 << 16] : [16, 1 << 10, 1 << 16]
        try rounds(settings, "payload", sizes) { bytes in
            let stream = StreamWorkload(
                producers: 1, replicas: 1, durability: .fsync,
                count: min(streamCount, (256 << 20) / bytes), form: .data, payloadBytes: bytes)
            let rate = try Cluster.run(in: settings.folder) {
                try stream.rate(try Rival.conflux.cast(stream, in: $0))
            }
            curve.add(rate, of: Rival.conflux.name, at: bytes)
        }
        return curve
    }

    // MARK: Sessions

    private func sessions(_ settings: Settings) throws -> Curve {
        var curve = Curve(
            "One in flight beside nodes that only dispatch, with fsync",
            over: "sessions", "µs")
        let counts = isFull ? [1, 10, 100, 1_000, 4_000] : [1, 100, 1_000]
        let latency = LatencyWorkload(durability: .fsync, zeroedBytes: 0, count: 1_000)
        try rounds(settings, "sessions", counts) { count in
            let result = try Cluster.run(in: settings.folder) { cluster in
                let (sequencer, addresses) = try cluster.startSequencer(
                    .conflux, .fsync, zeroedBytes: 0, subscribers: 1)
                try sequencer.awaitReady()
                for first in stride(from: 1, to: count, by: Self.sessionsOfProcess) {
                    let part = min(Self.sessionsOfProcess, count - first)
                    try cluster.start(.visitors(at: Place(addresses[0]), count: part)).awaitReady()
                }
                return try latency.times(
                    of: cluster.start(.roundTrips(at: Place(addresses[0]), count: latency.count)))
            }
            curve.add(result.microseconds(\.applied, 0.5), of: "applied, p50", at: count)
            curve.add(result.microseconds(\.applied, 0.99), of: "applied, p99", at: count)
        }
        return curve
    }

    /// The number of nodes in one process.
    private static let sessionsOfProcess = 500

    // MARK: Histories

    private func history(_ settings: Settings) throws -> Curve {
        var curve = Curve(
            "With the log's length", over: "entries", "ms")
        let counts = (3...(isFull ? 7 : 5)).map { Int(pow(10, Double($0))) }
        try rounds(settings, "log", counts) { count in
            try Cluster.run(in: settings.folder) { cluster in
                let history = try History(
                    KeeperSettings(keepsAll: true), log: "log", stateBytes: 100_000, in: cluster)
                try history.write(to: count)
                let trips = try history.writer.times(
                    .roundTrips(History.name, count: 500, rows: history.rows))
                curve.add(medianMilliseconds(trips), of: "one in flight, receipt p50", at: count)
                curve.add(
                    Double(try history.join(in: cluster)) / 1e6, of: "a new node is current",
                    at: count)
                try history.writer.time(.close)
                history.keeper.end()
                let (restarted, _, _) = try cluster.startKeeper(KeeperSettings())
                curve.add(
                    Double(try restarted.kept().started) / 1e6, of: "start of the sequencer",
                    at: count)
            }
        }
        return curve
    }

    private func states(_ settings: Settings) throws -> Curve {
        var curve = Curve(
            "With the size of a state", over: "bytes", "ms")
        let sizes = (3...(isFull ? 8 : 7)).map { Int(pow(10, Double($0))) }
        try rounds(settings, "state", sizes) { bytes in
            for table in [TableKind.tree, .dictionary] {
                let result = try Cluster.run(in: settings.folder) {
                    try LargeWorkload(stateBytes: bytes, table: table).run(settings, in: $0)
                }
                curve.add(
                    result.longestMeanwhile, of: "\(table): others' longest receipt", at: bytes)
                curve.add(result.join, of: "\(table): a new node is current", at: bytes)
            }
        }
        return curve
    }

    private func stores(_ settings: Settings) throws -> Curve {
        var curve = Curve(
            "With the number of stores in a node", over: "stores", "ms")
        let counts = (0...(isFull ? 4 : 3)).map { Int(pow(10, Double($0))) }
        for round in 0..<settings.rounds {
            settings.note("growth, stores, round \(round + 1)")
            try Cluster.run(in: settings.folder) { cluster in
                let (_, address, _) = try cluster.startKeeper(KeeperSettings())
                let node = try cluster.start(.ledger(address: address))
                var open = 0
                for count in counts {
                    let opening = try node.times(.openMany(first: open, count: count - open))
                    open = count
                    let trips = try node.times(.roundTrips("s0", count: 500, rows: 10))
                    curve.add(
                        medianMilliseconds(opening.suffix(100)), of: "opening one", at: count)
                    curve.add(
                        medianMilliseconds(trips), of: "one in flight, receipt p50", at: count)
                }
            }
        }
        return curve
    }
}
