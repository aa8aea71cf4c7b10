import ConfluxWorker
import TicketModel

await Worker.main(
    "ticket-desk", version: "1.0.0", states: [HostedState(Hall.self), HostedState(Sales.self)]
) { node in
    let (hall, sales) = (try await node.store(Hall.self), try await node.store(Sales.self))
    let desk = Desk(node: node, hall: hall, sales: sales)
    while !Task.isCancelled {
        do {
            // Of all desks, one is in here. The others wait for their turn.
            try await node.withLease("desk") { lease in try await desk.run(lease) }
        } catch let error as DispatchError where error.code == .leaseLost {
            // Another desk has its turn. Ask again.
            continue
        }
    }
}
