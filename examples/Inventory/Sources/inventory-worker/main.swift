import ConfluxWorker
import InventoryModel

await Worker.main(
    "inventory-worker", version: "1.0.0",
    states: [HostedState(Stock.self), HostedState(Orders.self)]
) { node in
    let orders = try await node.store(Orders.self)
    let fulfilment = Fulfilment(try await node.store(Stock.self), orders)
    // Runs once at the beginning, and whenever the set of open orders changes.
    for await open in orders.changed(\.open).values where !open.isEmpty {
        try await fulfilment.fillOpen()
    }
}
