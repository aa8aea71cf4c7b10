import ConfluxNode
import Testing

struct Stock: Model, Equatable {
    static let name = "stock"
    var left = 0
    enum Action: Codable, Sendable, Equatable { case add(amount: Int) }
    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .add(let amount): left += amount
        }
    }
}

/// Is only compiled: it names a port that may be somebody else's.
func replicate() async throws {
    let node = try await Node.connect(to: "tcp://127.0.0.1:7400")
    let stock = try await node.store(Stock.self)  // current when this returns
    try await stock.dispatch(.add(amount: 5)).receipt()  // ordered, durable, applied here
    print(stock.left)
}

struct ConfluxArticle {
    @Test(.timeLimit(.minutes(5))) func `a store works in one process`() async throws {
        let stock = ModelStore(Stock())
        let observer = stock.changed(\.left).observe { left in print("left: \(left)") }
        try await stock.dispatch(.add(amount: 5)).receipt()  // committed when this returns
        print(stock.left)
        observer.dispose()
        #expect(stock.left == 5)
    }
}
