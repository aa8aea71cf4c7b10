import ConfluxNode

/// A list that only grows. Which operations made it, and in which order, can be read off it.
struct Values: Model {
    static let name = "values"
    var all: [Int] = []

    enum Action: Codable, Sendable { case append(value: Int) }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .append(let value): all.append(value)
        }
    }
}
