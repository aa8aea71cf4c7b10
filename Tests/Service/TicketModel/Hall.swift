import Conflux

/// The seats of a hall.
public struct Hall: ScheduledModel, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "hall"
    /// What Conflux dispatches when it is time for something.
    public static let timePassed = Action.timePassed

    /// What can happen to a hall.
    public enum Action: Codable, Sendable, Equatable {
        /// Holds a seat for a customer, for two minutes.
        case hold(seat: String, customer: String)
        /// Frees a seat that was held and not sold.
        case free(seat: String, customer: String)
        /// Sells a seat that is held for the customer.
        case sell(seat: String, customer: String)
        /// Means nothing else.
        case timePassed
    }

    /// A seat that is not free.
    public struct Seat: Codable, Sendable, Equatable {
        /// For whom it is held, or to whom it is sold.
        public var customer: String
        /// Whether it is sold.
        public var isSold: Bool

        /// A seat of a customer.
        public init(customer: String, isSold: Bool) {
            (self.customer, self.isSold) = (customer, isSold)
        }
    }

    /// All seats that are not free, by their names.
    public var seats: [String: Seat] = [:]
    /// What happens later.
    public var schedule = Schedule<Action>()

    /// An empty hall.
    public init() {}

    /// Refuses to hold a seat twice, and to sell a seat that is not held.
    public func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .hold(let seat, _):
            guard seats[seat] == nil else { throw HallRefusal.taken(seat) }
        case .sell(let seat, let customer):
            guard seats[seat] == Seat(customer: customer, isSold: false) else {
                throw HallRefusal.notHeld(seat)
            }
        case .free, .timePassed: break
        }
    }

    /// Changes the hall. Conflux calls this only after the check has passed.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .hold(let seat, let customer):
            seats[seat] = Seat(customer: customer, isSold: false)
            schedule.set(
                .free(seat: seat, customer: customer), after: .seconds(120), key: seat, in: context)
        case .free(let seat, let customer):
            guard seats[seat] == Seat(customer: customer, isSold: false) else { return }
            seats[seat] = nil
            schedule.cancel(seat)
        case .sell(let seat, _):
            seats[seat]?.isSold = true
            schedule.cancel(seat)
        case .timePassed: break
        }
    }
}

/// Why nothing has changed.
public enum HallRefusal: Error, Equatable, CustomStringConvertible {
    case taken(String)
    case notHeld(String)

    /// The reason, for people.
    public var description: String {
        switch self {
        case .taken(let seat): "seat \(seat) is taken"
        case .notHeld(let seat): "seat \(seat) is not held for this customer"
        }
    }
}
