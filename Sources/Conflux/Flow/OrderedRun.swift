import Synchronization

/// A run of ordered actions for one store: filled by one thread, handed to the store's lane once,
/// and emptied there. Each action is made in place and moved out of the run, so none is copied.
///
/// *Invariant*: the actions from `head` to `count` are initialised, and so are the contexts before `count`.
// Sendable: one thread has it at a time. Actions may be committed on another thread: that is the
// contract of `State.Action`.
package final class OrderedRun<S: State>: @unchecked Sendable {
    // Unchecked exclusivity: one thread has it at a time, and no access lasts while another function is called.

    @exclusivity(unchecked) private var actions: UnsafeMutablePointer<S.Action>
    /// The place of each action, in the log's order.
    @exclusivity(unchecked) private var contexts: UnsafeMutablePointer<ActionContext>
    /// For how many there is room.
    @exclusivity(unchecked) private var capacity: Int
    /// The actions before this index have been moved out.
    @exclusivity(unchecked) private var head = 0
    /// How many actions were appended.
    @exclusivity(unchecked) package private(set) var count = 0

    /// The bytes of the actions' payloads.
    @exclusivity(unchecked) package var payloadBytes = 0

    /// See ``isFinished``.
    private let finished = Atomic(false)

    /// Makes an empty run.
    ///
    /// - Parameter capacity: How many actions fit in before it grows.
    package init(capacity: Int = 16) {
        self.capacity = capacity
        actions = .allocate(capacity: capacity)
        contexts = .allocate(capacity: capacity)
    }

    deinit {
        dropActions()
        actions.deallocate()
        contexts.deallocate()
    }

    /// Makes a run of actions that are in memory already.
    package convenience init(_ run: [OrderedAction<S>]) {
        self.init(capacity: max(1, run.count))
        for ordered in run { append(ordered.action, ordered.context) }
    }

    /// The place of an action, also once the action has moved out.
    package func context(at index: Int) -> ActionContext {
        precondition(index < count, "a run of \(count) actions has none at \(index)")
        return contexts[index]
    }

    /// Appends an action.
    package func append(_ action: S.Action, _ context: ActionContext) {
        appendEach { actions, contexts, _ in
            actions.initialize(to: action)
            contexts.initialize(to: context)
            return 1
        }
    }

    /// Has actions made where they are kept.
    ///
    /// - Parameters:
    ///   - least: For how many there has to be room.
    ///   - body: Makes some actions from the first place on, and their contexts likewise. Gets
    ///     uninitialised memory for `room` of each, `least` or more. Returns how many it made.
    package func appendEach(
        reserving least: Int = 1,
        _ body: (
            _ actions: UnsafeMutablePointer<S.Action>,
            _ contexts: UnsafeMutablePointer<ActionContext>, _ room: Int
        ) -> Int
    ) {
        while capacity - count < least { grow() }
        count += body(actions + count, contexts + count, capacity - count)
    }

    @inline(never)
    private func grow() {
        let (former, formerContexts) = (actions, contexts)
        capacity *= 2
        actions = .allocate(capacity: capacity)
        contexts = .allocate(capacity: capacity)
        (actions + head).moveInitialize(from: former + head, count: count - head)
        contexts.moveInitialize(from: formerContexts, count: count)
        former.deallocate()
        formerContexts.deallocate()
    }

    /// Empties it for the next use, and keeps its room. Contexts hold no reference, so nothing is freed of them.
    package func clear() {
        dropActions()
        (head, count, payloadBytes) = (0, 0, 0)
        finished.store(false, ordering: .relaxed)
    }

    private func dropActions() {
        (actions + head).deinitialize(count: count - head)
        head = count
    }

    /// Takes the actions out of the run, in their order, for as long as the body returns true.
    ///
    /// - Parameter body: Gets the action's index, the action and its context.
    @inline(__always)
    func takeEach(_ body: (_ index: Int, _ action: S.Action, _ context: ActionContext) -> Bool) {
        // To advance one pointer asks for the action's type once; to index would ask each time.
        var next = actions + head
        for index in head..<count {
            head = index + 1
            guard body(index, next.move(), contexts[index]) else { return }
            next += 1
        }
    }

    /// Says that the lane is done with the run, and that the completion has returned. If you see
    /// ``isFinished`` and hold the only reference, you may use the run again. (Holding the only
    /// reference is not enough: it doesn't say that other threads' accesses come before yours.)
    func finish() { finished.store(true, ordering: .releasing) }

    /// Whether a lane is done with it.
    package var isFinished: Bool { finished.load(ordering: .acquiring) }

    /// Whether its room is small enough to be kept for the next use.
    package var isWorthKeeping: Bool { capacity <= Self.keptCapacityMax }

    /// The most actions for which room is kept.
    private static var keptCapacityMax: Int { 16_384 }
}
