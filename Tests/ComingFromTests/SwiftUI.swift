import Conflux
import Observation
import Testing

/// Has names as SwiftUI does: what stands in it has to say which ones it means.
enum WithSwiftUI {
    struct State {}
    struct Transaction {}

    enum LikeAction { case like }

    final class LikeState: Conflux.State {
        typealias Action = LikeAction
        typealias Mutations = LikeMutations

        fileprivate let count = Variable(0)
    }

    struct LikeMutations: Conflux.Mutations {
        func commit(action: LikeAction, state: LikeState) {
            state.count.value += 1
        }
    }

    static func resolve(_ transaction: Conflux.Transaction) -> DispatchHandle {
        transaction.react()
    }
}

@MainActor
@Observable
final class CounterScreen {
    private(set) var count = 0

    // As in `.task { await screen.follow(store) }` of a view.
    func follow(_ store: ModelStore<Counter>) async {
        for await count in store.changed(\.count).values { self.count = count }
    }
}

@MainActor
final class Canvas {
    var texts: [String] = []
}

@MainActor
func draw(_ store: ModelStore<Counter>, onto canvas: Canvas) {
    withObservationTracking {
        canvas.texts.append("\(store.count)")
    } onChange: {
        Task { @MainActor in draw(store, onto: canvas) }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromSwiftUI {
    @MainActor
    @Test func `a view that reads a store is redrawn when the store changes`() async {
        let store = ModelStore<Counter>()
        let canvas = Canvas()
        draw(store, onto: canvas)
        for count in 1...3 {
            store.dispatch(.increase)
            while canvas.texts.count <= count { await Task.yield() }
        }
        #expect(canvas.texts == ["0", "1", "2", "3"])
    }

    @Test func `names that SwiftUI also has are qualified by the module`() async throws {
        let scope = Scope()
        let store = scope.run {
            Store<WithSwiftUI.LikeState>(
                state: .init(), mutations: .init(), executor: .immediate)
        }
        store.actions.dispatch(action: .like)
        #expect(store.computed.state.count.value == 1)
        let storage = scope.run { Storage(1) }
        try await WithSwiftUI.resolve(scope.chain().change(storage) { $0.replace(2) }).receipt()
        #expect(storage.value == 2)
    }

    @MainActor
    @Test func `a view's own state follows a store, until its task ends`() async {
        let store = ModelStore<Counter>()
        let screen = CounterScreen()
        let task = Task { await screen.follow(store) }
        store.dispatch(.increase)
        while screen.count == 0 {
            await withCheckedContinuation { changed in
                withObservationTracking {
                    _ = screen.count
                } onChange: {
                    changed.resume()
                }
            }
        }
        task.cancel()
        await task.value
        #expect(screen.count == 1)
    }
}
