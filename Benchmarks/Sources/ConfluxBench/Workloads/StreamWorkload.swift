import Foundation

/// Producers dispatch one by one as fast as they can; replicas check the total order.
struct StreamWorkload {
    let producers: Int
    let replicas: Int
    let durability: Durability
    var count: Int
    /// What Conflux's actions are.
    var form = OpaqueForm.record
    /// Of an action of Conflux's; the others' have 64.
    var payloadBytes = Role.payloadBytes

    var name: String {
        "P\(producers) R\(replicas) \(durability)" + (form == .data ? ", actions of Data" : "")
    }

    private struct Result {
        /// Actions a second, from the first dispatch to the last replica's last action.
        var rate: Double
        /// Processor time of the sequencer, in microseconds an action.
        var sequencerCost: Double
    }

    func measure(_ settings: Settings) throws -> [Row] {
        var results: [Side: [Result]] = [:]
        for round in 0..<settings.rounds {
            for side in settings.sides(of: round) {
                settings.note("stream \(name), round \(round + 1), \(side)")
                results[side, default: []].append(
                    try Cluster.run(in: settings.folder) { try run(side, in: $0) })
            }
        }
        let ours = results[.conflux] ?? []
        let theirs = results[.partner] ?? []
        return [
            Row(
                "stream", name, "actions/s", ours.map(\.rate), theirs.map(\.rate),
                isHigherBetter: true),
            Row(
                "stream", "\(name), sequencer", "CPU µs/action", ours.map(\.sequencerCost),
                theirs.map(\.sequencerCost)),
        ]
    }

    /// The processes of one run, but for a server that others wrote.
    struct Cast {
        var sequencer: Child?
        var watching: [Child]
        var sending: [Child]
        /// A replica that is stopped until the others have applied everything.
        var stopped: Child?
    }

    /// How many actions a producer dispatches.
    func share(of producer: Int) -> Int {
        count / producers + (producer < count % producers ? 1 : 0)
    }

    /// Starts all processes of a run.
    func cast(
        _ side: Side, in cluster: Cluster, frameActions: Int = Role.frameActions
    ) throws -> Cast {
        let (sequencer, addresses) = try cluster.startSequencer(
            side, durability, zeroedBytes: 0, subscribers: replicas)
        let input = addresses[0]
        let output = addresses[addresses.count - 1]
        let watching = try (0..<replicas).map { _ in
            try cluster.start(
                side == .conflux
                    ? .replica(at: Place(input), count: count, form: form)
                    : .partnerReplica(output: output, count: count))
        }
        let sending = try (0..<producers).map { producer in
            try cluster.start(
                side == .conflux
                    ? .producer(
                        at: Place(input), producer: producer, count: share(of: producer),
                        form: form, payloadBytes: payloadBytes)
                    : .partnerProducer(
                        input: input, producer: producer, count: share(of: producer),
                        frameActions: frameActions))
        }
        return Cast(sequencer: sequencer, watching: watching, sending: sending)
    }

    private func run(_ side: Side, in cluster: Cluster) throws -> Result {
        let cast = try cast(side, in: cluster)
        try awaitReady(cast)
        let usedBefore = try cast.sequencer?.usedProcessorNanoseconds() ?? 0
        let rate = try rateWhenReady(cast)
        let used = try (cast.sequencer?.usedProcessorNanoseconds() ?? 0) - usedBefore
        return Result(
            rate: rate, sequencerCost: Double(used) / 1_000 / Double(count))
    }

    /// Actions a second, from the first dispatch to the last replica's last action.
    func rate(_ cast: Cast) throws -> Double {
        try awaitReady(cast)
        return try rateWhenReady(cast)
    }

    private func awaitReady(_ cast: Cast) throws {
        try cast.sequencer?.awaitReady()
        for child in cast.watching + cast.sending { try child.awaitReady() }
        try cast.stopped?.awaitReady()
    }

    private func rateWhenReady(_ cast: Cast) throws -> Double {
        try cast.stopped?.suspend()
        for child in cast.sending { try child.go() }
        let start = try cast.sending.map { child -> UInt64 in
            guard case .produced(let start, _, _) = try child.next() else {
                throw BenchError("a producer told something else")
            }
            return start
        }.min()
        let sightings = try cast.watching.map { try sighting(of: $0) }
        try cast.stopped?.resume()
        try check(sightings + (cast.stopped.map { [try sighting(of: $0)] } ?? []))
        guard let start, let end = sightings.map(\.end).max(), end > start else {
            throw BenchError("nothing was measured")
        }
        return Double(count) / (Double(end - start) / 1e9)
    }

    private func sighting(of replica: Child) throws -> Sighting {
        guard case .replicated(let sighting) = try replica.next() else {
            throw BenchError("a replica told something else")
        }
        return sighting
    }

    /// All replicas saw every action, in one order, and each producer's in its own.
    private func check(_ sightings: [Sighting]) throws {
        guard Set(sightings.map(\.hash)).count == 1,
            sightings.allSatisfy({ $0.count == UInt64(count) && $0.disorders == 0 })
        else { throw BenchError("the order is broken: \(sightings)") }
    }
}
