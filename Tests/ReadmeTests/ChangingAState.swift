import Conflux
import ConfluxTesting
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ChangingAState {
    struct AddedProperty {
        struct Stock: Model, Equatable {
            static let name = "stock"
            static let schemaVersion = 2
            static let oldestSchemaVersion = 1
            var left = 0
            var minimum = 5  // new

            enum Action: Codable, Sendable { case add(amount: Int) }

            mutating func apply(_ action: Action, _ context: ActionContext) {
                if case .add(let amount) = action { left += amount }
            }

            static func migrate(_ old: SnapshotReader, from version: Int) throws -> Stock {
                try old.decode(filling: Stock())
            }

            static func revert(_ stock: Stock, to version: Int) -> any Encodable & Sendable {
                struct First: Encodable { var left: Int }
                return First(left: stock.left)
            }
        }

        @Test func `the first version gets a minimum`() throws {
            let changes = try MigrationChecker(Stock.self).changes(in: #"{"left":7}"#, from: 1)
            #expect(changes.map(\.description) == ["+ /minimum: 5"])
        }
    }

    struct RenamedProperty {
        struct Stock: Model {
            static let name = "stock"
            static let schemaVersion = 3
            static let oldestSchemaVersion = 2
            var count = 0  // was `left`
            var minimum = 5

            enum Action: Codable, Sendable { case add(amount: Int) }

            mutating func apply(_ action: Action, _ context: ActionContext) {
                if case .add(let amount) = action { count += amount }
            }

            static func migrate(_ old: SnapshotReader, from version: Int) throws -> Stock {
                struct Former: Decodable {
                    var left: Int
                    var minimum: Int?  // since version 2
                }
                let former = try old.decode(Former.self)
                return Stock(count: former.left, minimum: former.minimum ?? Stock().minimum)
            }

            static func revert(_ stock: Stock, to version: Int) -> any Encodable & Sendable {
                struct Second: Encodable { var left: Int, minimum: Int }
                return Second(left: stock.count, minimum: stock.minimum)
            }
        }

        @Test(arguments: [
            (1, #"{"left":7}"#, ["+ /count: 7", "- /left: 7", "+ /minimum: 5"]),
            (2, #"{"left":7,"minimum":2}"#, ["+ /count: 7", "- /left: 7"]),
        ])
        func `the count was called left`(version: Int, json: String, expected: [String]) throws {
            let changes = try MigrationChecker(Stock.self).changes(in: json, from: version)
            #expect(changes.map(\.description) == expected)
        }
    }

    struct SplitStore {
        struct Orders: Model, Equatable {
            static let name = "orders"
            var items: [String: Int] = [:]
            var isAdopted = false

            enum Action: Codable, Sendable {
                case adopt(items: [String: Int])
                case order(item: String)
            }

            struct AdoptedAlready: Error {}

            func check(_ action: Action, _ context: ActionContext) throws {
                if case .adopt = action, isAdopted { throw AdoptedAlready() }
            }

            mutating func apply(_ action: Action, _ context: ActionContext) {
                switch action {
                case .adopt(let items):
                    self.items.merge(items) { $0 + $1 }
                    isAdopted = true
                case .order(let item): items[item, default: 0] += 1
                }
            }
        }

        @Test(.ownScope) func `orders are adopted once`() async {
            let orders = TestStore(Orders())
            await orders.send(.order(item: "fig")) { $0.items = ["fig": 1] }
            await orders.send(.adopt(items: ["fig": 2, "pear": 1])) {
                $0.items = ["fig": 3, "pear": 1]
                $0.isAdopted = true
            }
            await orders.send(.adopt(items: ["fig": 2]), failing: .refused)
            await orders.finish()
        }
    }

    struct ChangedRule {
        struct Stock: Model {
            static let name = "stock"
            static let schemaVersion = 3
            static let oldestSchemaVersion = 2
            var left = 0
            var minimum = 5

            enum Action: Codable, Sendable { case take(amount: Int) }

            mutating func apply(_ action: Action, _ context: ActionContext) {
                switch action {
                case .take(let amount) where context.schemaVersion < 3: left -= amount
                case .take(let amount): left = max(minimum, left - amount)
                }
            }
        }

        @Test func `the former rule holds until the version rises`() {
            var stock = Stock(left: 6)
            stock.apply(.take(amount: 4), ActionContext(schemaVersion: 2))
            #expect(stock.left == 2)
            stock.apply(.take(amount: 4), ActionContext(schemaVersion: 3))
            #expect(stock.left == 5)
        }
    }

    struct RemovedAction {
        struct Stock: Model, Equatable {
            static let name = "stock"
            static let schemaVersion = 4
            var count = 0

            enum Action: Codable, Sendable {
                case add(amount: Int)
                case recount  // nobody dispatches it since version 4, and the log may have it
            }

            mutating func apply(_ action: Action, _ context: ActionContext) {
                switch action {
                case .add(let amount): count += amount
                case .recount: count = max(0, count)
                }
            }
        }

        @Test(.ownScope) func `a recount in the log still has its effect`() async {
            let stock = TestStore(Stock(count: -1))
            await stock.send(.recount) { $0.count = 0 }
            await stock.finish()
        }
    }
}
