import Conflux

/// Fills orders: reserves the goods for each order, and then records the decision.
///
/// Any number of workers may do this at the same time, and each of them may die between the two steps. The states
/// ensure that nothing happens twice: a second reservation changes nothing, and a second decision is refused.
public struct Fulfilment: Sendable {
    private let stock: ModelStore<Stock>
    private let orders: ModelStore<Orders>

    /// Fills orders of these stores.
    public init(_ stock: ModelStore<Stock>, _ orders: ModelStore<Orders>) {
        (self.stock, self.orders) = (stock, orders)
    }

    /// Fills every order that is open now.
    ///
    /// - Throws: An error that keeps its actions from the log. Call it again in that case.
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
