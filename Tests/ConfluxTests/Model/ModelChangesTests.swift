import Conflux
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ModelChangesTests {
    @Test func `changes carry the old and the new value of one part`() async {
        let stock = ModelStore<Stock>()
        var changes = stock.changes(of: \.left).makeAsyncIterator()
        stock.dispatch(.add(amount: 5))
        #expect(await changes.next() == Change(old: 0, new: 5))
        stock.dispatch(.take(amount: 2))
        #expect(await changes.next() == Change(old: 5, new: 3))
    }

    @Test func `a slow reader gets one change, from the first old to the last new value`() async {
        let stock = ModelStore<Stock>()
        var changes = stock.changes(of: \.left).makeAsyncIterator()
        for _ in 0..<10 { stock.dispatch(.add(amount: 1)) }
        #expect(await changes.next() == Change(old: 0, new: 10))
    }

    @Test func `a change between subscribing and reading isn't lost`() async {
        let stock = ModelStore<Stock>()
        let changes = stock.changes(of: \.left)
        stock.dispatch(.add(amount: 5))
        var iterator = changes.makeAsyncIterator()
        #expect(await iterator.next() == Change(old: 0, new: 5))
    }

    @Test func `a value that stays, or returns before it was seen, is not a change`() async {
        let stock = ModelStore<Stock>()
        var changes = stock.changes(of: \.left).makeAsyncIterator()
        stock.dispatch(.add(amount: 0))
        stock.dispatch(.add(amount: 1))
        stock.dispatch(.take(amount: 1))
        let next = Task { await changes.next() }
        stock.dispatch(.add(amount: 7))
        // The reader may have seen an intermediate value. In any case it ends with the last one.
        #expect(await next.value?.new == 7)
    }

    @Test func `the whole model's changes come one action at a time`() async {
        let stock = ModelStore<Stock>()
        var changes = stock.changes.makeAsyncIterator()
        stock.dispatch(.add(amount: 5))
        let change = await changes.next()
        #expect(change?.old == Stock())
        #expect(change?.new.left == 5)
    }

    @Test func `the changes end when the store is released`() async {
        var stock: ModelStore<Stock>? = ModelStore<Stock>()
        let changes = stock?.changes(of: \.left)
        let reader = Task {
            var seen: [Int] = []
            if let changes { for await change in changes { seen.append(change.new) } }
            return seen
        }
        stock?.dispatch(.add(amount: 5))
        stock = nil
        // The action was committed before the release, so every reader that had subscribed by then gets it.
        let seen = await reader.value
        #expect(seen == [5] || seen.isEmpty)
    }

    @Test func `a change that came before the release is still read after it`() async {
        var stock: ModelStore<Stock>? = ModelStore<Stock>()
        var changes = stock?.changes(of: \.left).makeAsyncIterator()
        stock?.dispatch(.add(amount: 5))
        stock = nil
        #expect(await changes?.next() == Change(old: 0, new: 5))
        #expect(await changes?.next() == nil)
    }

    @Test func `the changes end when the reading task is cancelled`() async {
        let stock = ModelStore<Stock>()
        let changes = stock.changes(of: \.left)
        let reader = Task { for await _ in changes {} }
        reader.cancel()
        await reader.value
        stock.dispatch(.add(amount: 1))
    }

    @Test func `each loop over the same changes sees them all`() async {
        let stock = ModelStore<Stock>()
        let changes = stock.changes(of: \.left)
        var first = changes.makeAsyncIterator()
        var second = changes.makeAsyncIterator()
        stock.dispatch(.add(amount: 2))
        #expect(await first.next() == Change(old: 0, new: 2))
        #expect(await second.next() == Change(old: 0, new: 2))
    }

    @Test func `a restored snapshot is a change`() async {
        let stock = ModelStore<Stock>()
        var changes = stock.changes(of: \.left).makeAsyncIterator()
        stock.core.restore(Stock(left: 9), at: SequenceNumber(4)) { _ in }
        #expect(await changes.next() == Change(old: 0, new: 9))
    }
}
