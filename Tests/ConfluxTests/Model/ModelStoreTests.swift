import Conflux
import ConfluxVocabulary
import Foundation
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ModelStoreTests {
    @Test func `a model changes by actions and is read by its parts' names`() async throws {
        let stock = ModelStore<Stock>()
        let receipt = try await stock.dispatch(.add(amount: 5)).receipt()
        #expect(stock.left == 5)
        #expect(stock.value.left == 5)
        #expect(receipt.sequence == SequenceNumber(1))
        #expect(receipt.log == nil)
        #expect(receipt.epoch == .none)
        #expect(receipt.timestamp.rawValue == stock.lastContext?.timestamp)
    }

    @Test func `a model makes a model's store, however it is spelled`() async throws {
        for stock in [
            Store(Stock(left: 1)), ModelStore(Stock(left: 1)), ModelStore<Stock>(Stock(left: 1)),
        ] {
            try await stock.dispatch(.add(amount: 3)).receipt()
            #expect(stock.left == 4)
        }
        // A value that is not a model doesn't get a model's store.
        let storage: Storage<[Int]> = Storage([1])
        let empty: Storage<Int?> = Storage(nil)
        #expect(storage.value == [1] && empty.value == nil)
    }

    @Test func `a refused action changes nothing, and its error carries receipt and reason`() async
    {
        let stock = ModelStore(Stock(left: 3))
        await #expect { try await stock.dispatch(.take(amount: 4)).receipt() } throws: {
            guard let error = $0 as? DispatchError else { return false }
            return error.code == .refused && error.receipt?.sequence == SequenceNumber(1)
                && error.reason as? OutOfStock == OutOfStock(left: 3)
        }
        #expect(stock.value == Stock(left: 3))
    }

    @Test func `a store's handle is kept through its queue`() async throws {
        let held = HeldExecutor()
        let stock = ModelStore<Stock>(executor: held.executor)
        let first = stock.dispatch(.add(amount: 1))
        let second = stock.dispatch(.take(amount: 2))
        #expect(first.outcome == nil)
        held.runAll()
        #expect(try await first.receipt().sequence == SequenceNumber(1))
        await #expect(throws: DispatchError.self) { try await second.receipt() }
    }

    @Test func `the same number, log and store give the same random numbers`() throws {
        let log = LogID(high: 1, low: 2)
        let room = try #require(StoreName("room/42"))
        let other = try #require(StoreName("room/43"))
        func draw(_ store: StoreName, _ number: UInt64) -> [UInt64] {
            let context = ActionContext(
                sequence: SequenceNumber(number),
                seed: ActionContext.seed(log: log, store: store))
            var random = context.random
            return (0..<4).map { _ in random.next() }
        }
        #expect(draw(room, 7) == draw(room, 7))
        #expect(draw(room, 7) != draw(room, 8))
        #expect(draw(room, 7) != draw(other, 7))
        #expect(Set((1...1_000).flatMap { draw(room, $0) }).count == 4_000)
    }

    @Test func `class states get contexts and may refuse`() async throws {
        let store = Store<Ledger>(
            state: Ledger(), mutations: LedgerMutations(), executor: .immediate)
        try await store.actions.dispatch(2).receipt()
        await #expect { try await store.actions.dispatch(-1).receipt() } throws: {
            ($0 as? DispatchError)?.code == .refused
        }
        try await store.actions.dispatch(3).receipt()
        #expect(store.computed.state.entries == [1: 2, 3: 3])
    }

    @Test func `a store of a model takes the model's actions, whichever way it is made`() {
        let (store, same) = (Store(Stock(left: 1)), ModelStore(Stock(left: 1)))
        store.dispatch(.add(amount: 3))
        same.dispatch(.add(amount: 3))
        #expect(store.left == 4 && same.left == 4)
        #expect(type(of: store) == type(of: same))
        // A value that is not a model gets a storage.
        #expect(type(of: Store(1)) == Storage<Int>.self)
    }

    @Test func `touching a store in apply ends the program with a message`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            ModelStore<Meddler>().dispatch(.dispatch)
        }
        #expect(Self.tells(result))
    }

    @Test func `reading a store in apply ends the program with a message`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            ModelStore<Meddler>().dispatch(.read)
        }
        #expect(Self.tells(result))
    }

    @Test func `reading a store in a computed property ends the program with a message`() async {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            _ = ModelStore<Meddler>().victimLeft
        }
        #expect(Self.tells(result))
    }

    @Test func `a snapshot can't be set around the lane`() async {
        await #expect(processExitsWith: .failure) {
            ModelStore<Stock>().computed.state.snapshot = Stock(left: 1)
        }
    }

    private static func tells(_ result: ExitTest.Result?) -> Bool {
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        return text.contains("A store was touched inside a model")
    }
}

/// A class state that writes down its actions with their numbers.
final class Ledger: State {
    typealias Action = Int
    typealias Mutations = LedgerMutations
    var entries: [UInt64: Int] = [:]
}

struct LedgerMutations: ContextMutations {
    struct Negative: Error {}

    func check(action: Int, state: Ledger, context: ActionContext) throws {
        if action < 0 { throw Negative() }
    }

    func commit(action: Int, state: Ledger, context: ActionContext) {
        state.entries[context.sequence.rawValue] = action
    }
}
