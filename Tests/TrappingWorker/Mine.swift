import ConfluxNode
import Dispatch

/// A model whose reducer traps or hangs, or whose actions trap when they are decoded, for tests of what
/// happens to the process. With the word `tough` among its arguments, a process does not trap at `explode`.
struct Mine: Model {
    static let name = "mine"
    var count = 0

    enum Action: Codable, Sendable { case add(amount: Amount), explode, hang }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .add(let amount): count += amount.value
        case .explode: precondition(Self.isTough, "a mine")
        case .hang: DispatchSemaphore(value: 0).wait()
        }
    }

    static let isTough = CommandLine.arguments.contains("tough")
}

/// A number that can't be negative. Its decoding traps instead of throwing an error.
struct Amount: Codable, Sendable {
    let value: Int

    init(from decoder: any Decoder) throws {
        value = try decoder.singleValueContainer().decode(Int.self)
        precondition(value >= 0, "a trap in a payload")
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}

/// A model that never fails.
struct Tally: Model {
    static let name = "tally"
    var count = 0

    enum Action: Codable, Sendable { case add(amount: Int) }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        if case .add(let amount) = action { count += amount }
    }
}
