import Conflux

/// The orders, and the status of each.
public struct Orders: Model, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "orders"

    /// What can happen to an order.
    public enum Action: Codable, Sendable, Equatable {
        /// A customer orders something. The customer chooses the id, and may send the order again.
        case place(id: String, item: String, amount: Int)
        /// The goods are reserved.
        case confirm(id: String)
        /// The goods are not available.
        case reject(id: String, why: String)
    }

    /// The status of an order.
    public enum Status: Codable, Sendable, Equatable {
        case placed, confirmed
        case rejected(String)
    }

    /// One order.
    public struct Order: Codable, Sendable, Equatable {
        /// Its id, which the customer chose.
        public let id: String
        /// The item that is ordered.
        public let item: String
        /// How many of the item are ordered.
        public let amount: Int
        /// The order's status.
        public internal(set) var status = Status.placed
    }

    /// Every order, by its id.
    public private(set) var orders: [String: Order] = [:]

    /// The orders without a decision, sorted by id.
    public var open: [Order] {
        orders.values.filter { $0.status == .placed }.sorted { $0.id < $1.id }
    }

    /// No orders.
    public init() {}

    /// Refuses an id that another order has, and a second decision.
    public func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .place(let id, let item, let amount):
            guard let known = orders[id] else { return }
            guard known.item == item, known.amount == amount else { throw OrderRefusal.idTaken(id) }
        case .confirm(let id), .reject(let id, _):
            guard let known = orders[id] else { throw OrderRefusal.unknown(id) }
            guard known.status == .placed else { throw OrderRefusal.decided(id) }
        }
    }

    /// Changes the orders by an action that passed the check.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .place(let id, let item, let amount):
            if orders[id] == nil { orders[id] = Order(id: id, item: item, amount: amount) }
        case .confirm(let id): orders[id]?.status = .confirmed
        case .reject(let id, let why): orders[id]?.status = .rejected(why)
        }
    }
}

/// Why the orders did not change.
public enum OrderRefusal: Error, Equatable, CustomStringConvertible {
    case idTaken(String), unknown(String), decided(String)

    /// The reason, for people.
    public var description: String {
        switch self {
        case .idTaken(let id): "another order has the id \(id)"
        case .unknown(let id): "there is no order \(id)"
        case .decided(let id): "the order \(id) is decided already"
        }
    }
}
