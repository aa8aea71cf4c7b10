import Conflux

/// The goods on the shelves, and those that are reserved for orders.
public struct Stock: Model, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "stock"

    /// What can happen to the stock.
    public enum Action: Codable, Sendable, Equatable {
        /// A delivery arrives.
        case deliver(item: String, amount: Int)
        /// Reserves goods for an order. To reserve again for the same order changes nothing.
        case reserve(order: String, item: String, amount: Int)
    }

    /// How many of each item are left.
    public private(set) var left: [String: Int] = [:]
    /// How many items each order has got.
    public private(set) var reserved: [String: Int] = [:]

    /// Empty shelves.
    public init() {}

    /// Refuses invalid amounts, and reservations of more than there is.
    public func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .deliver(_, let amount):
            guard (1...1_000_000).contains(amount) else { throw StockRefusal.badAmount }
        case .reserve(let order, let item, let amount):
            guard amount > 0 else { throw StockRefusal.badAmount }
            guard reserved[order] == nil else { return }
            let left = left[item] ?? 0
            guard amount <= left else { throw StockRefusal.outOfStock(item, left: left) }
        }
    }

    /// Changes the stock by an action that passed the check.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .deliver(let item, let amount): left[item, default: 0] += amount
        case .reserve(let order, let item, let amount):
            guard reserved[order] == nil else { return }
            left[item, default: 0] -= amount
            reserved[order] = amount
        }
    }
}

/// Why the stock did not change.
public enum StockRefusal: Error, Equatable, CustomStringConvertible {
    case badAmount
    case outOfStock(String, left: Int)

    /// The reason, for people.
    public var description: String {
        switch self {
        case .badAmount: "an amount is 1 to 1,000,000"
        case .outOfStock(let item, let left): "only \(left) of \(item) left"
        }
    }
}
