import ConfluxNode
import InventoryModel

/// Takes deliveries and orders. Any number of processes may do so at once, and each of them may die at any time.
struct Shop: Sendable {
    private let node: Node
    private let stock: ModelStore<Stock>
    private let orders: ModelStore<Orders>

    /// Opens both stores.
    init(_ node: Node) async throws {
        self.node = node
        (stock, orders) = (try await node.store(Stock.self), try await node.store(Orders.self))
    }

    /// Puts goods on the shelves.
    func deliver(_ item: String, _ amount: Int) async throws -> Receipt {
        try await stock.dispatch(.deliver(item: item, amount: amount)).receipt(within: .seconds(10))
    }

    /// Takes goods from the shelves and records the order: both or neither.
    ///
    /// - Returns: The receipt; nil if the order was taken before.
    func take(_ order: Order, id: String) async throws -> Receipt? {
        try await node.transaction { [stock, orders] tx in
            if let known = try tx.read(orders).orders[id] {
                guard known == order else { throw IDTaken(id: id) }
                return
            }
            try tx.dispatch(.take(item: order.item, amount: order.amount), to: stock)
            try tx.dispatch(.record(id: id, order: order), to: orders)
        }.receipt
    }
}
