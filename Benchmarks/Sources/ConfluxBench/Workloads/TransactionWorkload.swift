import Conflux
import ConfluxNode
import Foundation

/// One in flight: an action with a condition, and a transaction over two stores, each beside a plain action. One node
/// makes them in turn, so that all have the same neighbours.
struct TransactionWorkload {
    let durability: Durability
    let count: Int

    func measure(_ settings: Settings) throws -> [Row] {
        var times: [[[UInt64]]] = [[], [], []]
        for round in 0..<settings.rounds {
            settings.note("transactions \(durability), round \(round + 1)")
            let found = try Cluster.run(in: settings.folder) { cluster in
                let (sequencer, addresses) = try cluster.startSequencer(
                    .conflux, durability, zeroedBytes: 0, subscribers: 1)
                let client = try cluster.start(
                    .transactions(at: Place(addresses[0]), count: count))
                try sequencer.awaitReady()
                try client.awaitReady()
                try client.go()
                return try (0..<times.count).map { _ -> [UInt64] in
                    guard case .times(let times) = try client.next() else {
                        throw BenchError("the node told something else")
                    }
                    return times.sorted()
                }
            }
            for (kind, sorted) in found.enumerated() { times[kind].append(sorted) }
        }
        return [(1, "an action with a condition"), (2, "a transaction over two stores")].flatMap {
            kind, what in
            [(0.5, "p50"), (0.99, "p99")].map { share, rank in
                func figures(_ kind: Int) -> [Double] {
                    times[kind].map { percentile(share, of: $0) / 1_000 }
                }
                return Row(
                    "transactions", "\(durability), \(what), receipt \(rank); partner: an action",
                    "µs",
                    figures(kind), figures(0))
            }
        }
    }
}

/// Half of a booking.
private struct Account: Model {
    static let name = "account"
    var balance = 0
    enum Action: Codable, Sendable { case add(amount: Int) }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        if case .add(let amount) = action { balance += amount }
    }
}

extension NodeRoles {
    static func transactions(at place: Place, count: Int) async throws {
        let node = try await Node.connect(to: place.address, settings: try place.nodeSettings)
        let from = try await node.store(Account.self, named: "from")
        let to = try await node.store(Account.self, named: "to")
        _ = begin()
        var times: [[UInt64]] = [[], [], []]
        for index in 0..<Role.warmUpCount + count {
            for kind in times.indices {
                let start = monotonicNanoseconds()
                switch kind {
                case 0: try await from.dispatch(.add(amount: 1)).receipt()
                case 1:
                    try await from.dispatch(.add(amount: 1), ifUnchangedSince: from.version)
                        .receipt()
                default:
                    try await node.transaction { transaction in
                        try transaction.dispatch(.add(amount: -1), to: from)
                        try transaction.dispatch(.add(amount: 1), to: to)
                    }
                }
                if index >= Role.warmUpCount { times[kind].append(monotonicNanoseconds() - start) }
            }
        }
        for kind in times { Control.tell(.times(kind)) }
        await node.close()
    }
}
