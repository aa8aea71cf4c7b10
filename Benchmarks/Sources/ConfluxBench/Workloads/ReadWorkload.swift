import Conflux
import Synchronization

/// A read of a model's value by key path, beside a read of a number under a lock.
struct ReadWorkload {
    let count: Int

    func measure(_ settings: Settings) throws -> [Row] {
        let stock = Scope().run { ModelStore<Stock>(Stock(left: 7)) }
        let locked = LockedNumber()
        var ours: [Double] = []
        var theirs: [Double] = []
        for round in 0..<settings.rounds {
            settings.note("read, round \(round + 1)")
            for side in settings.sides(of: round) {
                switch side {
                case .conflux: ours.append(try nanoseconds { stock.left })
                case .partner: theirs.append(try nanoseconds { locked.value.withLock { $0 } })
                }
            }
        }
        return [Row("read", "stock.left", "ns", ours, theirs)]
    }

    private func nanoseconds(_ read: () -> Int) throws -> Double {
        var sum = 0
        let start = monotonicNanoseconds()
        for _ in 0..<count { sum &+= read() }
        let end = monotonicNanoseconds()
        guard sum == 7 * count else { throw BenchError("read \(sum), not \(7 * count)") }
        return Double(end - start) / Double(count)
    }
}

private final class LockedNumber: Sendable {
    let value = Mutex(7)
}

private struct Stock: Model {
    static let name = "stock"
    var left = 0

    init() {}

    init(left: Int) {
        self.left = left
    }

    enum Action: Codable, Sendable { case add(amount: Int) }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        if case .add(let amount) = action { left += amount }
    }
}
