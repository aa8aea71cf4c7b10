import Synchronization

/// Another way for dispatched actions than straight to the stores here: a node's way to the log.
package protocol ActionRoute<S>: AnyObject, Sendable {
    /// The state whose actions travel.
    associatedtype S: State

    /// Sends an action on its way. Must not wait for its commit.
    ///
    /// Called on the dispatching thread, holding no lock, in that thread's order. It may come in
    /// just after the route was removed, from a dispatch that began before.
    ///
    /// - Parameter action: What was dispatched.
    /// - Returns: What its outcome can be waited for by.
    func submit(_ action: S.Action) -> DispatchHandle
}

/// An action that the log has ordered, with its place and time.
package struct OrderedAction<S: State> {
    /// What happens.
    package let action: S.Action
    /// Its place, time, origin and random numbers.
    package let context: ActionContext

    /// Pairs an action with its context.
    package init(action: S.Action, context: ActionContext) {
        self.action = action
        self.context = context
    }
}

extension OrderedAction: Sendable where S.Action: Sendable {}

/// What became of a run of ordered actions in one store.
package struct RunReport: Sendable {
    /// An action that the state's check refused.
    package struct Refusal: Sendable {
        /// The action's index in the run.
        package let index: Int
        /// What the check threw.
        package let error: any Error
    }

    /// The refused actions, in order.
    package internal(set) var refusals: [Refusal] = []
    /// How many actions of the run were dealt with, from its beginning: committed, refused, or
    /// passed over as the store had them already. Fewer than the run has if the store was released.
    package internal(set) var completed = 0
    /// Whether the store was released before the end of the run.
    package internal(set) var isClosed = false
}

/// Gathers how one dispatch ended in each of the stores it went to.
///
/// It is committed if one store committed it, with the oldest such store's receipt; else it ended
/// as it did in the oldest store.
final class Tally: Sendable {
    private struct Count {
        /// How many stores have reported.
        var reported = 0
        /// How many will; nil as long as that isn't known.
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

    init() {
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

    /// Takes down one store's outcome; the last one settles the dispatch.
    func report(_ outcome: Outcome, order: Int) {
        settle(
            count.withLock { count in
                switch outcome {
                case .committed:
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
        if let result { block.settle(from: 0, with: result) }
    }
}
