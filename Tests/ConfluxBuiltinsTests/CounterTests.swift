import Conflux
import ConfluxBuiltins
import Testing

struct CounterTests {
    private let store = CounterStore(
        state: CounterState(), mutations: CounterMutations(), executor: .immediate)

    @Test func `a counter counts`() {
        store.actions.increment()
        store.actions.add(amount: 5)
        store.actions.decrement()
        #expect(store.computed.count == 5)
    }

    @Test(arguments: [
        (Int.max, CounterAction.increment), (.min, .decrement), (-2, .add(amount: .min)),
    ])
    func `an overflow is refused and changes nothing`(count: Int, action: CounterAction)
        async throws
    {
        store.actions.add(amount: count)
        do {
            try await store.actions.dispatch(action).receipt()
            Issue.record("the action was not refused")
        } catch {
            #expect(error.code == .refused)
            #expect(error.reason is CounterRefusal)
        }
        #expect(store.computed.count == count)
    }

    @Test func `the snapshot is the count`() throws {
        let state = CounterState()
        state.snapshot = CounterState.Snapshot(count: 5)
        let bytes = try CanonicalCoder().encode(state.snapshot)
        #expect(String(decoding: bytes, as: UTF8.self) == #"{"count":5}"#)
        let decoded = try CanonicalCoder().decode(CounterState.Snapshot.self, from: bytes)
        #expect(decoded == state.snapshot)
    }

    @Test(arguments: [
        ("increment", CounterAction.increment), ("decrement", .decrement),
        (#"{"increment":{}}"#, .increment), (#"{"add":{"amount":5}}"#, .add(amount: 5)),
    ])
    func `actions are written as JSON or as a bare name`(text: String, action: CounterAction) throws
    {
        #expect(try ActionCoder<CounterAction>().decode(commandLine: text) == action)
    }

    @Test func `a wrong name gets a list of the right ones`() {
        do {
            _ = try ActionCoder<CounterAction>().decode(commandLine: "incr")
            Issue.record("the action was decoded")
        } catch {
            #expect(error.message.hasPrefix("expected one of: add, decrement, increment"))
        }
    }

    @Test func `every action is named`() throws {
        let actions: [CounterAction] = [.increment, .decrement, .add(amount: 1)]
        let coder = ActionCoder<CounterAction>()
        let names = try actions.map { action in
            let bytes = try coder.encode(action, as: .json)
            return try #require(JSONValue(json: bytes).object?.first { _ in true }).key
        }
        #expect(names.sorted() == CounterAction.actionNames)
    }
}
