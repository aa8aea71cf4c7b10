import Conflux
import Synchronization
import Testing

/// Waiting until a value is as wanted.
@Suite(.timeLimit(.minutes(5)))
struct WaitingTests {
    @Test func `a value that is as wanted is returned at once`() async throws {
        let stock = ModelStore(Stock(left: 3))
        #expect(try await stock.value(within: .zero) { $0.left == 3 }.left == 3)
    }

    @Test func `a wait ends with the action that makes the value as wanted`() async throws {
        let stock = ModelStore(Stock())
        let looks = AsyncStream.makeStream(of: Int.self)
        let waiting = Task {
            try await stock.readOnly.value {
                looks.continuation.yield($0.left)
                return $0.left > 4
            }
        }
        // It has begun.
        var left = looks.stream.makeAsyncIterator()
        #expect(await left.next() == 0)
        for _ in 1...6 { stock.dispatch(.add(amount: 1)) }
        #expect(try await waiting.value.left == 5)
    }

    @Test func `a wait ends after its time`() async {
        let stock = ModelStore(Stock())
        let error = await #expect(throws: StoreError.self) {
            try await stock.value(within: .milliseconds(20)) { $0.left > 0 }
        }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("ModelState<Stock>") == true, "\(error?.message ?? "")")
    }

    @Test func `a wait ends when its task is cancelled`() async {
        let stock = ModelStore(Stock())
        let begun = AsyncStream.makeStream(of: Void.self)
        let waiting = Task {
            try await stock.value { _ in
                begun.continuation.finish()
                return false
            }
        }
        for await _ in begun.stream {}
        waiting.cancel()
        let error = await #expect(throws: StoreError.self) { try await waiting.value }
        #expect(error?.code == .cancelled)
    }
}
