import Synchronization

/// Gathers how one dispatch ended in each of the stores it went to.
///
/// The dispatch is committed if a store committed it, with the oldest such store's receipt.
/// Otherwise it ended as it did in the oldest store.
final class Tally: Sendable {
    private struct Count {
        /// How many stores have reported.
        var reported = 0
        /// How many stores will report; nil until that is known.
        var expected: Int?
        var committed: (order: Int, outcome: Outcome)?
        var failed: (order: Int, outcome: Outcome)?

        /// The whole dispatch's outcome, once every store has reported.
        var result: Outcome? {
            guard reported == expected else { return nil }
            return (committed ?? failed)?.outcome
        }
    }

    private let count = Mutex(Count())
    private let block = OutcomeBlock()
    /// What accompanies the action.
    let ticket: DispatchTicket?
    private let completion: (@Sendable (Outcome) -> Void)?

    /// Makes a tally that has no reports yet.
    ///
    /// - Parameters:
    ///   - ticket: What accompanies the action.
    ///   - completion: Called once, by the thread that reports last, before waiting threads resume.
    init(ticket: DispatchTicket? = nil, completion: (@Sendable (Outcome) -> Void)? = nil) {
        self.ticket = ticket
        self.completion = completion
        _ = block.reserve()
    }

    var handle: DispatchHandle { DispatchHandle(block: block, index: 0) }

    /// Says how many stores will report, at least one.
    func expect(_ stores: Int) {
        settle(
            count.withLock { count in
                count.expected = stores
                return count.result
            })
    }

    /// Records one store's outcome. The last one settles the dispatch.
    func report(_ outcome: Outcome, order: Int) {
        settle(
            count.withLock { count in
                switch outcome {
                case .committed, .ordered:
                    if order < count.committed?.order ?? .max {
                        count.committed = (order, outcome)
                    }
                case .failed:
                    if order < count.failed?.order ?? .max { count.failed = (order, outcome) }
                }
                count.reported += 1
                return count.result
            })
    }

    private func settle(_ result: Outcome?) {
        guard let result else { return }
        completion?(result)
        block.settle(from: 0, with: result)
    }
}
