import Conflux

/// Fills orders: reserves the goods of each, then says what became of it.
///
/// Any number of workers may do this at once, and any of them may die between the two steps. The states see to it
/// that nothing happens twice: a second reservation for an order changes nothing, and a second decision is refused.
public struct Fulfilment: Sendable {
    private let stock: ModelStore<Stock>
    private let orders: ModelStore<Orders>

    /// Fills orders of these stores.
    public init(_ stock: ModelStore<Stock>, _ orders: ModelStore<Orders>) {
        (self.stock, self.orders) = (stock, orders)
    }

    /// Fills every order that is open now.
    ///
    /// - Throws: What keeps it from the log; call again then.
    public func fillOpen() async throws(DispatchError) {
        for order in orders.open { try await fill(order) }
    }

    /// Fills one order.
    private func fill(_ order: Orders.Order) async throws(DispatchError) {
        let decision: Orders.Action
        do throws(DispatchError) {
            let reservation = Stock.Action.reserve(
                order: order.id, item: order.item, amount: order.amount)
            try await stock.dispatch(reservation).receipt()
            decision = .confirm(id: order.id)
        } catch {
            guard error.code == .refused else { throw error }
            decision = .reject(id: order.id, why: error.reason.map { "\($0)" } ?? "refused")
        }
        do throws(DispatchError) {
            try await orders.dispatch(decision).receipt()
        } catch {
            // Another worker was faster.
            guard error.code == .refused else { throw error }
        }
    }
}
