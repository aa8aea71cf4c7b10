import Conflux

struct OutOfStock: Error, Equatable {
    let left: Int
}

struct Stock: Model, Equatable {
    static let name = "stock"
    var left = 0
    var takings = 0
    var lastContext: Sight?

    struct Sight: Codable, Equatable, Sendable {
        var sequence: UInt64
        var timestamp: Int64
        var number: UInt64
    }

    enum Action: Codable, Sendable {
        case add(amount: Int)
        case take(amount: Int)
    }

    func check(_ action: Action, _ context: ActionContext) throws {
        if case .take(let amount) = action, amount > left { throw OutOfStock(left: left) }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .add(let amount): left += amount
        case .take(let amount):
            left -= amount
            takings += 1
        }
        var random = context.random
        lastContext = Sight(
            sequence: context.sequence.rawValue, timestamp: context.timestamp.rawValue,
            number: random.next())
    }
}

/// A model whose code touches a store, which is not allowed.
struct Meddler: Model {
    static let name = "meddler"
    static let victim = ModelStore<Stock>()
    var isApplied = false

    enum Action: Codable, Sendable { case dispatch, read }

    var victimLeft: Int { Meddler.victim.left }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .dispatch: Meddler.victim.dispatch(.add(amount: 1))
        case .read: isApplied = Meddler.victim.left == 0
        }
    }
}
