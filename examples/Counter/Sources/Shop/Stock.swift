import Conflux

/// What is on the shelf: a state as a value.
public struct Stock: Model, Equatable {
    /// The same in every process.
    public static let name = "stock"

    /// What can happen.
    public enum Action: Codable, Sendable, Equatable {
        /// A delivery came.
        case add(amount: Int)
        /// Somebody buys.
        case take(amount: Int)
    }

    /// How many are left.
    public var left = 0

    /// An empty shelf.
    public init() {}

    /// Refuses what can't be; the same in every process, since all see the same stock.
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

/// Why nothing was taken.
public struct OutOfStock: Error, CustomStringConvertible {
    /// How many are left.
    public let left: Int

    /// For whoever reads the refusal.
    public var description: String { "only \(left) left" }
}
