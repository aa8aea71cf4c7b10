import Conflux

/// What customers have paid.
public struct Sales: Model, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "sales"

    /// What can happen to sales.
    public enum Action: Codable, Sendable, Equatable {
        /// A customer pays for a seat. The payment service has given the order its id.
        case pay(order: String, seat: String, customer: String)
        /// The desk sells the seat, or gives the money back.
        case settle(order: String, status: Status)
    }

    /// How far an order is.
    public enum Status: String, Codable, Sendable {
        case paid, sold, refunded
    }

    /// An order.
    public struct Order: Codable, Sendable, Equatable {
        /// What is ordered.
        public var seat: String
        /// By whom.
        public var customer: String
        /// How far it is.
        public var status: Status

        /// An order.
        public init(seat: String, customer: String, status: Status) {
            (self.seat, self.customer, self.status) = (seat, customer, status)
        }
    }

    /// All orders, by their ids.
    public var orders: [String: Order] = [:]

    /// No orders.
    public init() {}

    /// The orders that nobody has settled.
    public var open: [String] { orders.filter { $0.value.status == .paid }.keys.sorted() }

    /// Refuses to pay an order twice, and to settle it twice.
    public func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .pay(let order, _, _):
            guard orders[order] == nil else { throw SalesRefusal.known(order) }
        case .settle(let order, _):
            guard orders[order]?.status == .paid else { throw SalesRefusal.notOpen(order) }
        }
    }

    /// Changes the sales. Conflux calls this only after the check has passed.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .pay(let order, let seat, let customer):
            orders[order] = Order(seat: seat, customer: customer, status: .paid)
        case .settle(let order, let status): orders[order]?.status = status
        }
    }
}

/// Why nothing has changed.
public enum SalesRefusal: Error, Equatable, CustomStringConvertible {
    case known(String)
    case notOpen(String)

    /// The reason, for people.
    public var description: String {
        switch self {
        case .known(let order): "order \(order) is paid already"
        case .notOpen(let order): "order \(order) is not open"
        }
    }
}
