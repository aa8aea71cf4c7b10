import Conflux
import Synchronization
import Testing

enum FromRedux {
    struct Todos: Model, Equatable {
        static let name = "todos"
        var items: [Todo] = []

        enum Action: Codable, Sendable, Equatable {
            case add(text: String)
            case toggle(index: Int)
        }

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .toggle(let index) = action, !items.indices.contains(index) {
                throw NoSuchTodo()
            }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .add(let text): items.append(Todo(text: text))
            case .toggle(let index): items[index].isDone.toggle()
            }
        }

        var open: Int { items.count { !$0.isDone } }
    }

    struct Todo: Codable, Sendable, Equatable {
        var text: String
        var isDone = false
    }

    struct NoSuchTodo: Error {}

    /// Writes down what is dispatched.
    final class Logger: Middleware {
        let lines = Mutex<[String]>([])

        func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
            lines.withLock { $0.append("\(dispatch.action)") }
            return .pass
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromRedux {
    typealias Todos = FromRedux.Todos

    @Test func `a store is read, observed and dispatched to`() async throws {
        let counts = Mutex<[Int]>([])
        let store = ModelStore(Todos())
        let subscription = store.changed(\.open).observe { open in
            counts.withLock { $0.append(open) }
        }
        store.dispatch(.add(text: "write"))
        store.dispatch(.toggle(index: 0))
        subscription.dispose()
        #expect(store.items == [FromRedux.Todo(text: "write", isDone: true)])
        #expect(counts.withLock { $0 } == [0, 1, 0])
        await #expect(throws: DispatchError.self) {
            try await store.dispatch(.toggle(index: 7)).receipt()
        }
    }

    @Test func `middleware sees what is dispatched`() {
        let scope = Scope()
        let store = scope.run { ModelStore(Todos()) }
        let logger = FromRedux.Logger()
        let registration = scope.use(logger)
        store.dispatch(.add(text: "write"))
        registration.dispose()
        #expect(logger.lines.withLock { $0.count } == 1)
    }

    @Test func `what is asynchronous happens outside of the reducer`() async throws {
        let store = Scope().run { ModelStore(Todos()) }
        func fetchTodo() async -> String { "read" }
        // A thunk: any function that dispatches.
        func addFetched() async throws {
            let text = await fetchTodo()
            try await store.dispatch(.add(text: text)).receipt()
        }
        try await addFetched()
        #expect(store.items.map(\.text) == ["read"])
    }

    @Test func `time travel`() throws {
        let store = Scope().run { ModelStore(Todos()) }
        let recorder = Recorder(store)
        store.dispatch(.add(text: "write"))
        try recorder.back()
        #expect(store.items.isEmpty)
        try recorder.forward()
        #expect(store.items.count == 1)
    }
}
