import Foundation

/// One producer dispatches typed actions one by one as fast as it can, and three replicas decode and apply
/// them; beside Foundation's JSON alone: one encoding and three decodings, on all processors.
struct TypedWorkload {
    let count: Int

    private static let replicas = 3

    func measure(_ settings: Settings) throws -> [Row] {
        var json: [Double] = []
        var compact: [Double] = []
        var hand: [Double] = []
        var alone: [Double] = []
        for round in 0..<settings.rounds {
            var parts: [() throws -> Void] = [
                { json.append(try run(.json, settings)) },
                { compact.append(try run(.compact, settings)) },
                { hand.append(try run(.hand, settings)) },
                { alone.append(try foundationRate()) },
            ]
            let first = round % parts.count
            parts = Array(parts[first...] + parts[..<first])
            settings.note("typed, round \(round + 1)")
            for part in parts { try part() }
        }
        let name = "P1 R\(Self.replicas) fsync, a counter's actions"
        return [
            Row(
                "typed", "\(name), JSON; partner: Foundation's JSON alone", "actions/s", json,
                alone, isHigherBetter: true),
            Row(
                "typed", "\(name), compact; partner: in JSON", "actions/s", compact, json,
                isHigherBetter: true),
            Row(
                "typed", "\(name), compact by hand; partner: in JSON", "actions/s", hand, json,
                isHigherBetter: true),
        ]
    }

    private func run(_ coding: TypedCoding, _ settings: Settings) throws -> Double {
        let stream = StreamWorkload(
            producers: 1, replicas: Self.replicas, durability: .fsync, count: count)
        return try Cluster.run(in: settings.folder) { cluster in
            let (sequencer, addresses) = try cluster.startSequencer(
                .conflux, .fsync, zeroedBytes: 0, subscribers: Self.replicas)
            let place = Place(addresses[0])
            let watching = try (0..<Self.replicas).map { _ in
                try cluster.start(.typedReplica(at: place, count: count, coding: coding))
            }
            let sending = try cluster.start(
                .typedProducer(at: place, count: count, coding: coding))
            return try stream.rate(
                StreamWorkload.Cast(sequencer: sequencer, watching: watching, sending: [sending]))
        }
    }

    /// Actions a second that all processors could encode once and decode once for each replica.
    private func foundationRate() throws -> Double {
        let encoder = JSONEncoder()
        let decoder = JSONDecoder()
        let count = min(count, 50_000)
        let start = monotonicNanoseconds()
        for index in 0..<count {
            let bytes = try encoder.encode(TypedAction.add(amount: index))
            for _ in 0..<Self.replicas {
                guard case .add(let amount) = try decoder.decode(TypedAction.self, from: bytes),
                    amount == index
                else { throw BenchError("JSON gave another action") }
            }
        }
        let seconds = Double(monotonicNanoseconds() - start) / 1e9
        return Double(count) / seconds * Double(ProcessInfo.processInfo.activeProcessorCount)
    }
}
