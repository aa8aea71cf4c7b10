import ConfluxNode
import Foundation
import InventoryModel
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Buyers contend for the same goods at two front ends, while the sequencer is killed.
@Suite(.timeLimit(.minutes(5)))
struct ContentionTests {
    private static let pens = 400

    /// What a buyer was told about its orders, by their ids.
    private struct Told: Sendable {
        var taken: [String: Order] = [:]
        var refused: [String] = []
    }

    @Test func `goods and orders agree, and every buyer hears the truth`() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("inventory-\(UUID().uuidString)")
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: folder) } }
        var sequencer = try Program("conflux", Self.sequencer(at: "tcp://127.0.0.1:0", folder))
        defer { sequencer.kill() }
        let place = try await sequencer.rest(behind: "ready at ")
        let address = String(place.prefix { $0 != "," })
        let feed = String(
            place.dropFirst("\(address), feed at ".count).prefix { $0 != " " }.dropLast())

        let node = try await Node.connect(to: address)
        let stock = try await node.store(Stock.self)
        let orders = try await node.store(Orders.self)
        try await stock.dispatch(.deliver(item: "pen", amount: Self.pens)).receipt()

        let frontEnds = try (1...2).map { number in
            try Program(
                "inventory-http", ["--connect", address, "--name", "front-\(number)"],
                variables: ["PORT": "0"])
        }
        defer { for frontEnd in frontEnds { frontEnd.kill() } }
        var shops: [String] = []
        for frontEnd in frontEnds {
            shops.append(try await frontEnd.rest(behind: "serves "))
        }

        let (taken, report) = AsyncStream.makeStream(of: Void.self)
        async let buying = Self.buy(at: shops) {
            report.yield()
        } andEnd: {
            report.finish()
        }
        var sales = taken.makeAsyncIterator()
        for _ in 1...3 {
            for _ in 1...60 { try #require(await sales.next() != nil) }
            // At every place in the order, goods and orders agree.
            let sum = try await node.read(stock, orders) { $0.left["pen", default: 0] + $1.sold }
            #expect(sum == Self.pens)
            sequencer.kill()
            sequencer = try Program(
                "conflux", Self.sequencer(at: address, folder) + ["--feed", feed])
            _ = try await sequencer.rest(behind: "ready at ")
        }
        let told = try await buying
        // An order that is sent again is taken once. Its id belongs to it.
        let (id, order) = try #require(told.taken.first)
        for shop in shops {
            #expect(try await Self.post("\(shop)/orders/\(id)/pen/\(order.amount)") == 200)
            #expect(try await Self.post("\(shop)/orders/\(id)/pen/\(order.amount + 1)") == 409)
        }

        try await node.barrier()
        #expect(stock.left["pen"] == 0)
        #expect(orders.sold == Self.pens)
        #expect(orders.orders == told.taken)
        #expect(told.refused.allSatisfy { orders.orders[$0] == nil })
        // One front end packs at a time, and no order is left or packed twice.
        _ = try await orders.value { $0.unpacked.isEmpty }
        await node.close()

        // Each is in the log once, refused ones never. A lost turn rejects what came late, so an order is packed once.
        let log = try Program("conflux", ["log", "--json", "--connect", address])
        let entries = await log.all().filter { $0.contains(#""target":"orders/shared""#) }
        for action in ["record", "pack"] {
            let count = entries.count { $0.contains("\"\(action)\":") }
            #expect(count == told.taken.count, "\(action)")
        }
    }

    private static func sequencer(at address: String, _ folder: URL) -> [String] {
        ["sequencer", "--bind", address, "--data", folder.path]
    }

    /// Orders pens at all shops at the same time, until there are none.
    private static func buy(
        at shops: [String], whenTaken: @escaping @Sendable () -> Void, andEnd: () -> Void
    ) async throws -> Told {
        defer { andEnd() }
        return try await withThrowingTaskGroup(of: Told.self) { group in
            for buyer in 0..<8 {
                group.addTask { try await buy(as: buyer, at: shops, whenTaken: whenTaken) }
            }
            return try await group.reduce(into: Told()) { sum, told in
                sum.taken.merge(told.taken) { one, _ in one }
                sum.refused += told.refused
            }
        }
    }

    private static func buy(
        as buyer: Int, at shops: [String], whenTaken: @Sendable () -> Void
    ) async throws -> Told {
        var told = Told()
        var shop = buyer
        // The first buyers take single pens, so none is left at the end.
        let order = Order(item: "pen", amount: 1 + buyer / 3)
        for number in 1... {
            let id = "\(buyer)-\(number)"
            while true {
                let base = shops[shop % shops.count]
                let status = try await post("\(base)/orders/\(id)/pen/\(order.amount)")
                if status == 200 {
                    told.taken[id] = order
                    whenTaken()
                    break
                }
                if status == 409 {
                    told.refused.append(id)
                    return told
                }
                // Nothing happened, or nobody knows. The order has an id, so the buyer asks elsewhere.
                try #require([202, 503, 504].contains(status))
                shop += 1
            }
        }
        return told
    }

    private static func post(_ address: String) async throws -> Int {
        var request = URLRequest(url: try #require(URL(string: address)))
        request.httpMethod = "POST"
        let (_, response) = try await URLSession.shared.data(for: request)
        return try #require(response as? HTTPURLResponse).statusCode
    }
}

extension Orders {
    /// How many pens were sold.
    fileprivate var sold: Int { orders.values.reduce(0) { $0 + $1.amount } }
}
