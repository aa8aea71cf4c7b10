import Conflux
import Dispatch
import Synchronization
import Testing

final class ViewModel: Sendable {
    enum Activity { case didReachBigNumber }

    struct Content: Sendable {
        fileprivate(set) var count = 0
        var countText: String { count.description }
    }

    fileprivate let storage = Storage(Content())
    var state: ReadOnlyStorage<Content> { storage.readOnly }

    func increment(number: Int) {
        storage.perform("increment") { context in
            DispatchQueue.global().async {
                // Keeps the store until this has run.
                guard let store = context.store else { return }
                store.commit("increment", "by \(number)") { draft in
                    draft.updateIfChanged(\.count, to: draft.count + number)
                }
                if store.count > 10 { store.emit(Activity.didReachBigNumber) }
            }
        }
    }

    func decrement(number: Int) {
        storage.commit("decrement") { draft in
            draft.updateIfChanged(\.count, to: draft.value.count - number)
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ComingFromCycler {

    @Test func `a view model commits, and emits activities`() async {
        let viewModel = ViewModel()
        var activities = viewModel.state.activities(of: ViewModel.Activity.self)
            .values.makeAsyncIterator()
        var texts = viewModel.state.changed(\.countText).values.makeAsyncIterator()
        #expect(await texts.next() == "0")
        viewModel.increment(number: 11)
        #expect(await texts.next() == "11")
        #expect(await activities.next() == .didReachBigNumber)
        viewModel.decrement(number: 1)
        #expect(await texts.next() == "10")
    }

    @Test func `subscriptions to state and activities last until they are disposed`() {
        let viewModel = ViewModel()
        let texts = Mutex<[String]>([])
        let seen = Mutex<[ViewModel.Activity]>([])
        let subscriptions = DisposableScope()
        subscriptions += viewModel.state.changed(\.countText).observe { text in
            texts.withLock { $0.append(text) }
        }
        subscriptions += viewModel.state.activities(of: ViewModel.Activity.self)
            .observe { activity in seen.withLock { $0.append(activity) } }
        viewModel.decrement(number: 1)
        viewModel.storage.emit(ViewModel.Activity.didReachBigNumber)
        subscriptions.dispose()
        viewModel.decrement(number: 1)
        #expect(texts.withLock { $0 } == ["0", "-1"])
        #expect(seen.withLock { $0 } == [.didReachBigNumber])
    }

    @Test func `the receipt rethrows what a commit threw`() async {
        struct TooLow: Error {}
        let storage = Storage(1)
        let commit = storage.commit { draft in
            draft.replace(-1)
            throw TooLow()
        }
        let failure = await #expect(throws: DispatchError.self) { try await commit.receipt() }
        #expect(failure?.reason is TooLow && storage.value == 1)
    }

    @Test func `a storage is used by itself`() {
        struct Pair: Equatable { var a = 0, b = 0 }
        let storage = Storage(Pair())
        let seen = Mutex<[Pair]>([])
        let token = storage.observe { value in seen.withLock { $0.append(value) } }
        storage.update(\.a, to: 1)
        storage.updateIfChanged(\.a, to: 1)
        storage.commit { draft in  // one notice
            draft.a = 2
            draft.b = 3
        }
        storage.replace(Pair(a: 9))
        token.dispose()
        storage.replace(Pair())
        #expect(seen.withLock { $0 } == [Pair(a: 1), Pair(a: 2, b: 3), Pair(a: 9)])
    }

    @Test func `every step is reported with its name and its source location`() {
        final class Steps: Middleware {
            let seen = Mutex<[String]>([])
            let files = Mutex<Set<String>>([])
            func note(_ step: String) { seen.withLock { $0.append(step) } }
            func note(_ label: DispatchLabel?) {
                files.withLock { _ = $0.insert("\(label?.file ?? "nowhere")") }
            }

            func willDispatch<S: State>(
                _ dispatch: DispatchedAction<S>
            ) -> Passage<S.Action> {
                note("will dispatch \(dispatch.label?.name ?? "")")
                note(dispatch.label)
                return .pass
            }
            func willCommit<S: State>(_ commit: CommittedAction<S>) {
                note("will mutate \(commit.label?.name ?? "")")
                note(commit.label)
            }
            func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
                note("did mutate \(commit.label?.name ?? "")")
            }
            func didChange<S: State>(_ commit: CommittedAction<S>, _ change: StorageChange) {
                note(
                    change.keyPath == nil ? "did replace" : "did change \(change.old) \(change.new)"
                )
            }
            func didEmit(_ activity: any Sendable, from: StoreIdentity, label: DispatchLabel) {
                note("did emit \(activity)")
                note(label)
            }
            func willPerform(_ label: DispatchLabel, for: StoreIdentity) {
                note("will perform \(label.name)")
                note(label)
            }
        }
        let scope = Scope()
        let steps = Steps()
        scope.use(steps)
        let viewModel = scope.run { ViewModel() }
        viewModel.decrement(number: 1)
        viewModel.storage.perform("reset") { $0.store?.replace(.init()) }
        viewModel.storage.emit(ViewModel.Activity.didReachBigNumber)
        #expect(
            steps.seen.withLock { $0 } == [
                "will dispatch decrement", "will mutate decrement", "did change 0 -1",
                "did mutate decrement", "will perform reset", "will dispatch replace",
                "will mutate replace", "did replace", "did mutate replace",
                "did emit didReachBigNumber",
            ])
        #expect(steps.files.withLock { $0 } == ["\(#file)"])
    }
}
