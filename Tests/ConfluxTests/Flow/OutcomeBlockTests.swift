import Synchronization
import Testing

@testable import Conflux

@Suite(.timeLimit(.minutes(5)))
struct OutcomeBlockTests {
    private func receipt(_ number: UInt64) -> Receipt {
        Receipt(
            log: LogID(high: 1, low: 2), epoch: Epoch(3), sequence: SequenceNumber(number),
            timestamp: Timestamp(4))
    }

    private func block(_ count: Int) -> OutcomeBlock {
        let block = OutcomeBlock()
        for index in 0..<count { #expect(block.reserve() == index) }
        return block
    }

    private func sequence(_ block: OutcomeBlock, _ index: Int) -> UInt64? {
        guard case .committed(let receipt) = block.outcome(at: index) else { return nil }
        return receipt.sequence.rawValue
    }

    private let refusal = Outcome.failed(DispatchError(code: .refused, message: "no"))

    @Test func `a committed run gives each action its own number`() {
        let block = block(5)
        block.settle(from: 1, count: 3, with: .committed(receipt(10)))
        #expect((0..<5).map { sequence(block, $0) } == [nil, 10, 11, 12, nil])
    }

    @Test func `a refusal inside a run is kept, and numbering continues after it`() {
        let block = block(5)
        block.settle(from: 2, with: refusal)
        block.settle(from: 0, count: 5, with: .committed(receipt(10)))
        #expect((0..<5).map { sequence(block, $0) } == [10, 11, nil, 13, 14])
        #expect(block.outcome(at: 2) != nil)
    }

    @Test func `the first outcome of an action is final`() {
        let block = block(4)
        block.settle(from: 1, count: 2, with: .committed(receipt(10)))
        block.settle(from: 0, count: 4, with: .committed(receipt(50)))
        block.settle(from: 1, with: refusal)
        #expect((0..<4).map { sequence(block, $0) } == [50, 10, 11, 53])
    }

    @Test func `any order of runs and refusals settles as a plain table does`() {
        var random = SystemRandomNumberGenerator()
        let seed = random.next()
        var generator = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let count = Int.random(in: 1...20, using: &generator)
            let block = block(count)
            var table = [UInt64?](repeating: nil, count: count)
            var isSettled = [Bool](repeating: false, count: count)
            for step in 1...8 {
                let start = Int.random(in: 0..<count, using: &generator)
                let length = Int.random(in: 0...(count - start), using: &generator)
                let isRefusal = Bool.random(using: &generator)
                let first = UInt64(step * 100)
                block.settle(
                    from: start, count: length,
                    with: isRefusal ? refusal : .committed(receipt(first)))
                for index in start..<start + length where !isSettled[index] {
                    isSettled[index] = true
                    table[index] = isRefusal ? nil : first + UInt64(index - start)
                }
            }
            for index in 0..<count {
                #expect(sequence(block, index) == table[index], "seed \(seed)")
                #expect((block.outcome(at: index) != nil) == isSettled[index], "seed \(seed)")
            }
        }
    }

    @Test func `many tasks may wait for one action, before and after its end`() async throws {
        let block = block(3)
        let handle = DispatchHandle(block: block, index: 1)
        try await withThrowingTaskGroup(of: Receipt.self) { group in
            for _ in 0..<20 { group.addTask { try await handle.receipt() } }
            block.settle(from: 0, count: 3, with: .committed(receipt(7)))
            for _ in 0..<20 { group.addTask { try await handle.receipt() } }
            for try await receipt in group { #expect(receipt.sequence == SequenceNumber(8)) }
        }
    }

    /// Each refusal once searched all waiters, so that this took many minutes.
    @Test func `refusals are delivered one by one to as many waiters`() {
        let count = 100_000
        let block = block(count)
        let told = Mutex(0)
        for index in 0..<count {
            block.whenEnded(at: index) { _ in told.withLock { $0 += 1 } }
        }
        for index in stride(from: 0, to: count, by: 2) { block.settle(from: index, with: refusal) }
        #expect(told.withLock { $0 } == count / 2)
        block.settle(from: 0, count: count, with: .committed(receipt(1)))
        #expect(told.withLock { $0 } == count)
        #expect(sequence(block, count - 1) == UInt64(count))
        #expect(block.outcome(at: 0) != nil && sequence(block, 0) == nil)
    }

    @Test func `cancelling ends the wait and not the dispatch`() async throws {
        let block = block(1)
        let handle = DispatchHandle(block: block, index: 0)
        let task = Task { try await handle.receipt() }
        task.cancel()
        await #expect { try await task.value } throws: {
            ($0 as? DispatchError)?.code == .cancelled
        }
        block.settle(from: 0, with: .committed(receipt(1)))
        #expect(try await handle.receipt().sequence == SequenceNumber(1))
    }

    @Test func `a block is freed with its last handle`() {
        weak var freed: OutcomeBlock?
        var handle: DispatchHandle?
        do {
            let block = block(1)
            freed = block
            handle = DispatchHandle(block: block, index: 0)
        }
        #expect(freed != nil)
        _ = handle?.outcome
        handle = nil
        #expect(freed == nil)
    }
}
