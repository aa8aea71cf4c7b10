import Conflux

/// The goods on the shelves.
public struct Stock: Model, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "stock"

    /// What can happen to the stock.
    public enum Action: Codable, Sendable, Equatable {
        /// A delivery arrives.
        case deliver(item: String, amount: Int)
        /// Goods leave the shelves for an order.
        case take(item: String, amount: Int)
    }

    /// How many of each item are left.
    public private(set) var left: [String: Int] = [:]

    /// Empty shelves.
    public init() {}

    /// Refuses invalid amounts, and to take more than there is.
    public func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .deliver(_, let amount):
            guard (1...1_000_000).contains(amount) else { throw StockRefusal.badAmount }
        case .take(let item, let amount):
            guard amount > 0 else { throw StockRefusal.badAmount }
            let left = left[item] ?? 0
            guard amount <= left else { throw StockRefusal.outOfStock(item, left: left) }
        }
    }

    /// Changes the stock by an action that passed the check.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .deliver(let item, let amount): left[item, default: 0] += amount
        case .take(let item, let amount): left[item, default: 0] -= amount
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
