import ConfluxNode
import Testing

enum FromOrleans {
    struct Wallet: Model, Equatable {
        static let name = "wallet"
        var coins = 0

        enum Action: Codable, Sendable, Equatable { case add(coins: Int) }

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .add(let coins) = action, self.coins + coins < 0 { throw TooFewCoins() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if case .add(let coins) = action { self.coins += coins }
        }
    }

    struct TooFewCoins: Error {}
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromOrleans {
    typealias Wallet = FromOrleans.Wallet

    @Test func `a transaction over two grains`() async throws {
        try await EmbeddedCluster.run { cluster, node in
            let ada = try await node.store(Wallet.self, named: "ada")
            let bob = try await node.store(Wallet.self, named: "bob")
            try await ada.dispatch(.add(coins: 10)).receipt()

            try await node.transaction { tx in
                try tx.dispatch(.add(coins: -4), to: ada)
                try tx.dispatch(.add(coins: 4), to: bob)
            }
            #expect(ada.coins == 6 && bob.coins == 4)
        }
    }

    @Test func `a reminder is a timer in the log`() async throws {
        try await EmbeddedCluster.run { cluster, node in
            let wallet = try await node.store(Wallet.self, named: "ada")
            try await wallet.dispatch(
                .add(coins: 1), after: .seconds(86_400), every: .seconds(86_400), key: "bonus"
            ).receipt()
            let wasCancelled = try await wallet.cancelTimer("bonus")
            #expect(wasCancelled)
        }
    }
}
