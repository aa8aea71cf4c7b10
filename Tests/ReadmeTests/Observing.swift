import Conflux
import Testing

/// The sample of docs/observing.md.
struct ObservingArticle {
    struct Orders: Model, Equatable {
        static let name = "orders"
        var acknowledged: [Int: Bool] = [:]

        enum Action: Codable, Sendable, Equatable {
            case place(id: Int)
            case acknowledge(id: Int)
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .place(let id): acknowledged[id] = false
            case .acknowledge(let id): acknowledged[id] = true
            }
        }
    }

    @Test(.timeLimit(.minutes(5))) func `the origin of an action reacts to it`() async throws {
        let orders = Scope().run { ModelStore(Orders()) }
        orders.committedActions.observe { commit in
            guard commit.isOwn, case .place(let id) = commit.action else { return }
            orders.dispatch(.acknowledge(id: id))
        }
        orders.dispatch(.place(id: 7))
        let state = try await orders.value(within: .seconds(60)) { $0.acknowledged[7] == true }
        #expect(state.acknowledged == [7: true])
    }
}
