import Conflux

/// An order: some of one item.
public struct Order: Codable, Sendable, Hashable {
    /// The item.
    public let item: String
    /// How many of it.
    public let amount: Int

    /// An order.
    public init(item: String, amount: Int) {
        (self.item, self.amount) = (item, amount)
    }
}

/// The orders that were taken, and those that are not packed yet.
public struct Orders: Model, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "orders"

    /// What can happen to the orders.
    public enum Action: Codable, Sendable, Equatable {
        /// Records an order under an id that the customer has chosen.
        case record(id: String, order: Order)
        /// The order was packed.
        case pack(id: String)
    }

    /// Every order, by its id.
    public private(set) var orders: [String: Order] = [:]
    /// The ids of the orders that are not packed yet, in the order in which they were taken.
    public private(set) var unpacked: [String] = []

    /// No orders.
    public init() {}

    /// Refuses an id that an order has already, and to pack what needs no packing.
    public func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .record(let id, _):
            guard orders[id] == nil else { throw IDTaken(id: id) }
        case .pack(let id):
            guard unpacked.contains(id) else { throw NothingToPack(id: id) }
        }
    }

    /// Changes the orders by an action that passed the check.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .record(let id, let order):
            orders[id] = order
            unpacked.append(id)
        case .pack(let id): unpacked.removeAll { $0 == id }
        }
    }
}

/// Another order has the id.
public struct IDTaken: Error, Equatable, CustomStringConvertible {
    let id: String

    /// Another order has this id.
    public init(id: String) { self.id = id }

    /// The reason, for people.
    public var description: String { "another order has the id \(id)" }
}

/// No order with the id waits to be packed.
public struct NothingToPack: Error, Equatable, CustomStringConvertible {
    let id: String

    /// No order with this id waits.
    public init(id: String) { self.id = id }

    /// The reason, for people.
    public var description: String { "no order \(id) waits to be packed" }
}
