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
        }
    }

    fileprivate let count = Variable(0)
}

extension Computed where State == Counter {
    var count: Int { state.count.value }
}
