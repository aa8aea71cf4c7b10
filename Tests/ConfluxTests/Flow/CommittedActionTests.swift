import Conflux
import Synchronization
import Testing

/// What a store shows of the actions that it commits.
@Suite(.timeLimit(.minutes(5)))
struct CommittedActionTests {
    @Test func `an observer gets each committed action with its context, and no refused one`() {
        let store = ModelStore(Stock())
        let seen = Mutex<[String]>([])
        store.committedActions.observe { commit in
            seen.withLock {
                $0.append("\(commit.context.sequence) \(commit.action) \(commit.isOwn)")
            }
        }
        store.dispatch(.add(amount: 3))
        store.dispatch(.take(amount: 4))
        store.readOnly._store.dispatch(.take(amount: 1))
        #expect(
            seen.withLock { $0 } == ["1 add(amount: 3) true", "3 take(amount: 1) true"])
    }

    @Test func `the value is as the action left it, and its observers come first`() {
        let store = ModelStore(Stock())
        let seen = Mutex<[String]>([])
        @Sendable func note(_ line: String) { seen.withLock { $0.append(line) } }
        store.readOnly.committedActions.observe { [weak store] commit in
            note("\(commit.action) left \((commit.value as? Stock)?.left ?? -1)")
            // Comes behind the observers of this action.
            if case .add(let amount) = commit.action { store?.dispatch(.take(amount: amount)) }
        }
        store.observe(\.left) { note("value \($0.left)") }
        store.dispatch(.add(amount: 3))
        #expect(
            seen.withLock { $0 } == [
                "value 3", "add(amount: 3) left 3", "value 0", "take(amount: 3) left 0",
            ])
    }

    @Test func `an observation ends when it is disposed of, and with its object`() {
        let store = ModelStore(Stock())
        let count = Atomic(0)
        final class Owner {}
        var owner: Owner? = Owner()
        let observation = store.committedActions.observe { _ in count.add(1, ordering: .relaxed) }
        store.committedActions.observe(duringScopeOf: owner ?? Owner()) { _ in
            count.add(10, ordering: .relaxed)
        }
        store.dispatch(.add(amount: 1))
        #expect(count.load(ordering: .relaxed) == 11)
        observation.dispose()
        owner = nil
        store.dispatch(.add(amount: 1))
        #expect(count.load(ordering: .relaxed) == 11)
    }

    @Test func `a sequence of committed actions ends with the store`() async {
        var store: ModelStore<Stock>? = ModelStore(Stock())
        let commits = store?.committedActions.values
        store?.dispatch(.add(amount: 2))
        store = nil
        var amounts: [Int] = []
        for await commit in commits ?? AsyncStream(unfolding: { nil }) {
            if case .add(let amount) = commit.action { amounts.append(amount) }
        }
        #expect(amounts == [2])
    }

    @Test func `a class of one's own shows its actions, too`() {
        let store = tallyStore()
        let seen = Mutex<[Int]>([])
        store.committedActions.observe { commit in seen.withLock { $0.append(commit.action) } }
        store.actions.tell(7)
        #expect(seen.withLock { $0 } == [7])
    }
}
