import Conflux

/// The goods on the shelf: a state that is a value.
public struct Stock: Model, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "stock"

    /// What can happen.
    public enum Action: Codable, Sendable, Equatable {
        /// A delivery arrives.
        case add(amount: Int)
        /// A customer buys.
        case take(amount: Int)
    }

    /// How many are left.
    public var left = 0

    /// An empty shelf.
    public init() {}

    /// Refuses to sell more than there is. All processes have the same stock, so they decide in the same way.
    public func check(_ action: Action, _ context: ActionContext) throws {
        if case .take(let amount) = action, amount > left { throw OutOfStock(left: left) }
    }

    /// Changes the stock by an action that passed the check.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .add(let amount): left += amount
        case .take(let amount): left -= amount
        }
    }
}

/// Why a purchase was refused.
public struct OutOfStock: Error, CustomStringConvertible {
    /// How many are left.
    public let left: Int

    /// The reason, for people.
    public var description: String { "only \(left) left" }
}
