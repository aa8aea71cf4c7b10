import Conflux

/// Fruit on a shelf.
struct Stock: Model, Equatable {
    static let name = "stock"
    var counts: [String: Int] = [:]
    var isOpen = true

    enum Action: Codable, Sendable, Equatable {
        case add(String, Int)
        case take(String, Int)
        case close
    }

    struct NotEnough: Error, Equatable {
        var there: Int
    }

    func check(_ action: Action, _ context: ActionContext) throws {
        if case .take(let name, let count) = action, counts[name, default: 0] < count {
            throw NotEnough(there: counts[name, default: 0])
        }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .add(let name, let count): counts[name, default: 0] += count
        case .take(let name, let count): counts[name, default: 0] -= count
        case .close: isOpen = false
        }
    }
}

/// A state without a model.
final class Counter: State {
    enum Action: Sendable, Equatable { case increment }

    struct Mutations: Conflux.Mutations {
        func commit(action: Action, state: Counter) {
            state.count.value += 1
            if state.count.value % 2 == 0 { state.pairs.send(value: state.count.value / 2) }
        }
    }

    fileprivate let count = Variable(0)
    fileprivate let pairs = Sink<Int>()
}

extension Computed where State == Counter {
    var count: Int { state.count.value }
    var counts: Signal<Int> { state.count.signal }
    /// The number of pairs, sent whenever a pair is complete.
    var pairs: Signal<Int> { state.pairs.signal }
}

struct Earn: Codable, Sendable, Equatable { var amount: Int }
struct Lose: Codable, Sendable, Equatable {}

/// A model each of whose actions has its own type.
struct Wallet: ReducedModel, Equatable {
    static let name = "wallet"
    static let reducers = Reducers<Wallet>()
        .with(Earn.self) { wallet, action, context in
            wallet.amount += action.amount
            wallet.earnedAt = context.timestamp.rawValue
        }
    var amount = 0
    var earnedAt: Int64?
}

/// A model that stores timestamps, and draws random numbers.
struct Dice: Model, Equatable {
    static let name = "dice"
    var last = 0
    var rolledAt: Int64?

    enum Action: Codable, Sendable, Equatable { case roll }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        var random = context.random
        last = Int.random(in: 1...1_000_000_000, using: &random)
        rolledAt = context.timestamp.rawValue
    }
}
