import ConfluxWorker
import TicketModel

/// Settles what was paid.
struct Desk: Sendable {
    let node: Node
    let hall: ModelStore<Hall>
    let sales: ModelStore<Sales>

    /// Settles every open order, now and later, while it holds the lease.
    func run(_ lease: Lease) async throws {
        for await open in sales.changed(\.open).values {
            for order in open { try await settle(order, lease) }
        }
    }

    /// Sells the seat of an order, or gives the money back. Both stores change, or neither.
    private func settle(_ id: String, _ lease: Lease) async throws {
        try await node.transaction { tx in
            tx.require(lease)
            guard let order = try tx.read(sales).orders[id], order.status == .paid else { return }
            let held = Hall.Seat(customer: order.customer, isSold: false)
            let isHeld = try tx.read(hall).seats[order.seat] == held
            if isHeld {
                try tx.dispatch(.sell(seat: order.seat, customer: order.customer), to: hall)
            }
            try tx.dispatch(.settle(order: id, status: isHeld ? .sold : .refunded), to: sales)
        }
    }
}
