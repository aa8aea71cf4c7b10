import ConfluxNode
import Testing

enum FromAkka {
    struct Account: Model, Equatable {
        static let name = "account"
        var balance = 0

        enum Action: Codable, Sendable, Equatable {
            case deposit(amount: Int)
            case withdraw(amount: Int)
        }

        // The command handler: it accepts or rejects.
        func check(_ action: Action, _ context: ActionContext) throws {
            if case .withdraw(let amount) = action, amount > balance {
                throw Insufficient(balance: balance)
            }
        }

        // The event handler: it changes the state.
        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .deposit(let amount): balance += amount
            case .withdraw(let amount): balance -= amount
            }
        }
    }

    struct Insufficient: Error, Equatable { let balance: Int }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromAkka {
    typealias Account = FromAkka.Account

    @Test func `an entity is a store with a name of its own`() async throws {
        try await EmbeddedCluster.run { cluster, node in
            let account = try await node.store(Account.self, named: "ada")
            try await account.dispatch(.deposit(amount: 10)).receipt()
            do {
                try await account.dispatch(.withdraw(amount: 11)).receipt()
                Issue.record("withdrawn")
            } catch let error as DispatchError where error.code == .refused {
                print("rejected: \(error)")
            }
            #expect(account.balance == 10)
        }
    }

    @Test func `a process that holds no state asks for the effect`() async throws {
        try await EmbeddedCluster.run { cluster, node in
            let hosted = try await node.store(Account.self, named: "ada")
            let frontEnd = try await cluster.connect()
            let account = try frontEnd.actions(of: Account.self, named: "ada")
            try await account.dispatch(.deposit(amount: 10)).effect()
            await #expect(throws: DispatchError.self) {
                try await account.dispatch(.withdraw(amount: 11)).effect()
            }
            #expect(hosted.balance == 10)
            await frontEnd.close()
        }
    }

    @Test func `a singleton is what holds the lease`() async throws {
        try await EmbeddedCluster.run { cluster, node in
            let isHeld = try await node.withLease("reporter") { lease in lease.isHeld }
            #expect(isHeld)
        }
    }
}
