import ConfluxNode
import Foundation
import Shop

let address = ProcessInfo.processInfo.environment["CONFLUX_CONNECT"] ?? "tcp://127.0.0.1:7400"

do {
    let node = try await Node.connect(to: address)
    let stock = try await node.store(Stock.self)
    let visits = try await node.store(VisitState.self)

    visits.actions.enter()
    try await stock.dispatch(.add(amount: 10)).receipt()
    print("on the shelf: \(stock.left)")

    // Another clerk may be faster: the check decides at the action's place in the order.
    let receipt = try await stock.dispatch(.take(amount: 3)).receipt()
    print("sold 3 as entry \(receipt.sequence); left: \(stock.left)")

    do {
        try await stock.dispatch(.take(amount: 1_000)).receipt()
    } catch {
        print("not sold (\(error.code)): \(error.message)")
    }
    print("inside: \(visits.computed.inside)")
    await node.close()
} catch {
    FileHandle.standardError.write(Data("shop-clerk: \(error)\n".utf8))
    exit(1)
}
