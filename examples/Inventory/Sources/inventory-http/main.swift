import ConfluxWorker
import Foundation
import InventoryModel

await Worker.main(
    "inventory-http", version: "1.0.0",
    states: [HostedState(Stock.self), HostedState(Orders.self)]
) { node, ready in
    let port = ProcessInfo.processInfo.environment["PORT"].flatMap(UInt16.init) ?? 8080
    let server = try HTTPServer(port: port, FrontEnd(shop: try await Shop(node)))
    print("serves http://127.0.0.1:\(server.port)")
    fflush(nil)
    let packer = try await Packer(node)
    ready()
    // Until the worker ends.
    try await packer.run()
    withExtendedLifetime(server) {}
}
