import ConfluxNode
import Foundation
import InventoryModel

let address = ProcessInfo.processInfo.environment["CONFLUX_CONNECT"] ?? "tcp://127.0.0.1:7400"

do {
    let node = try await Node.connect(to: address)
    let stock = try await node.store(Stock.self)
    let orders = try await node.store(Orders.self)
    let fulfilment = Fulfilment(stock, orders)
    print("fills orders of \(address)")
    // Runs once at the beginning, and whenever the set of open orders changes.
    for await open in orders.changed(\.open).values where !open.isEmpty {
        try await fulfilment.fillOpen()
        print("filled: \(open.map(\.id).joined(separator: ", ")); left: \(stock.left)")
    }
    await node.close()
} catch {
    FileHandle.standardError.write(Data("inventory-worker: \(error)\n".utf8))
    exit(1)
}
