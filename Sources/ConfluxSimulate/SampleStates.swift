import Conflux
import ConfluxSimulation

/// The states of a campaign: what the nodes of its simulated clusters host.
enum SampleStates: String, CaseIterable, Sendable {
    /// Shows every entry that is lost, duplicated or out of order.
    case journal
    /// A model whose refusals depend on its state.
    case stock
    /// Two models together, like those of a service.
    case service

    var states: [SimulatedState] {
        switch self {
        case .journal: [.journal]
        case .stock: [Self.stockState]
        case .service: [Self.ordersState, Self.accountsState]
        }
    }

    private static let stockState = SimulatedState.model(Stock.self) { random in
        random.chance(0.5) ? .add(amount: random.int(in: 1...9)) : .take(amount: 3)
    }

    private static let ordersState = SimulatedState.model(Orders.self) { random in
        let number = random.int(in: 1...12)
        return switch random.int(in: 0...3) {
        case 0, 1: .place(number: number, amount: random.int(in: 1...5))
        case 2: .cancel(number: number)
        default: .ship(number: number)
        }
    }

    private static let accountsState = SimulatedState.model(Accounts.self, instances: 1) { random in
        let owner = "owner-\(random.int(in: 1...5))"
        return random.chance(0.4)
            ? .deposit(owner: owner, amount: random.int(in: 1...20))
            : .withdraw(owner: owner, amount: random.int(in: 1...15))
    }
}

/// The stock on a shelf.
private struct Stock: Model {
    static let name = "stock"
    private var left = 0

    enum Action: Codable, Sendable { case add(amount: Int), take(amount: Int) }
    struct OutOfStock: Error {}

    func check(_ action: Action, _ context: ActionContext) throws {
        if case .take(let amount) = action, amount > left { throw OutOfStock() }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .add(let amount): left += amount
        case .take(let amount): left -= amount
        }
    }
}

/// Orders, each of which is placed once and then shipped or cancelled.
private struct Orders: Model {
    static let name = "orders"
    private var open: [Int: Int] = [:]
    private var shipped = 0
    private var lastNumber: UInt64 = 0

    enum Action: Codable, Sendable {
        case place(number: Int, amount: Int)
        case cancel(number: Int)
        case ship(number: Int)
    }
    enum Refusal: Error { case isOpen, isNotOpen }

    func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .place(let number, _): if open[number] != nil { throw Refusal.isOpen }
        case .cancel(let number), .ship(let number):
            if open[number] == nil { throw Refusal.isNotOpen }
        }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .place(let number, let amount): open[number] = amount
        case .cancel(let number): open[number] = nil
        case .ship(let number): shipped += open.removeValue(forKey: number) ?? 0
        }
        lastNumber = context.sequence.rawValue
    }
}

/// The balances of owners. No balance is negative.
private struct Accounts: Model {
    static let name = "accounts"
    private var balances: [String: Int] = [:]

    enum Action: Codable, Sendable {
        case deposit(owner: String, amount: Int)
        case withdraw(owner: String, amount: Int)
    }
    struct Overdrawn: Error {}

    func check(_ action: Action, _ context: ActionContext) throws {
        guard case .withdraw(let owner, let amount) = action else { return }
        if balances[owner, default: 0] < amount { throw Overdrawn() }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .deposit(let owner, let amount): balances[owner, default: 0] += amount
        case .withdraw(let owner, let amount): balances[owner, default: 0] -= amount
        }
    }
}
