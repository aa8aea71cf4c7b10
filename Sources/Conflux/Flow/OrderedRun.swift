import ConfluxVocabulary
import Synchronization

/// A run of ordered actions for one store: filled by one thread, handed to the store's lane once, and emptied
/// there. An action is made where it is kept and moves out of it, so that none is copied.
///
/// *Invariant*: the actions from `head` on are initialised, as many as there are contexts behind it.
// Sendable: one thread has it at a time; that actions may be committed on another thread is the contract of
// `State.Action`.
package final class OrderedRun<S: State>: @unchecked Sendable {
    // Unchecked exclusivity: one thread has it at a time, and no access lasts while another function is called.

    @exclusivity(unchecked) @usableFromInline
    package private(set) var actions: UnsafeMutablePointer<S.Action>
    @exclusivity(unchecked) @usableFromInline package private(set) var capacity: Int
    /// The actions before this index moved out.
    @exclusivity(unchecked) private var head = 0
    /// The place of each action, in the log's order.
    @exclusivity(unchecked) @usableFromInline package var contexts: [ActionContext] = []

    /// See ``isFinished``.
    private let finished = Atomic(false)

    /// Makes an empty run.
    ///
    /// - Parameter capacity: For how many actions there is room before it grows.
    package init(capacity: Int = 16) {
        self.capacity = capacity
        actions = .allocate(capacity: capacity)
    }

    deinit {
        dropActions()
        actions.deallocate()
    }

    /// Makes a run of actions that are in memory already.
    package convenience init(_ run: [OrderedAction<S>]) {
        self.init(capacity: max(1, run.count))
        for ordered in run {
            place().initialize(to: ordered.action)
            append(ordered.context)
        }
    }

    /// How many actions were appended.
    package var count: Int { contexts.count }

    /// Where the next action is to be made. It belongs to the run once its context is appended.
    ///
    /// - Returns: Memory that is not initialised.
    @inlinable @inline(__always)
    package func place() -> UnsafeMutablePointer<S.Action> {
        if contexts.count == capacity { grow() }
        return actions + contexts.count
    }

    /// Appends the action that was made in ``place()``.
    @inlinable @inline(__always)
    package func append(_ context: ActionContext) { contexts.append(context) }

    @inline(never) @usableFromInline
    package func grow() {
        let larger = UnsafeMutablePointer<S.Action>.allocate(capacity: 2 * capacity)
        (larger + head).moveInitialize(from: actions + head, count: contexts.count - head)
        actions.deallocate()
        (actions, capacity) = (larger, 2 * capacity)
    }

    /// Empties it for the next use, and keeps its room.
    package func clear() {
        dropActions()
        head = 0
        contexts.removeAll(keepingCapacity: true)
        finished.store(false, ordering: .relaxed)
    }

    private func dropActions() {
        (actions + head).deinitialize(count: contexts.count - head)
        head = contexts.count
    }

    /// Takes the actions out of the run, in their order, for as long as the body returns true.
    ///
    /// - Parameter body: Gets the action's index, the action and its context.
    @inline(__always)
    func takeEach(_ body: (_ index: Int, _ action: S.Action, _ context: ActionContext) -> Bool) {
        // Stepping from one to the next asks for their type once, and not for each.
        var next = actions + head
        for index in head..<contexts.count {
            head = index + 1
            guard body(index, next.move(), contexts[index]) else { return }
            next += 1
        }
    }

    /// The lane is done with it, and with what it was told of it: whoever sees ``isFinished`` and has the only
    /// reference has it alone. (That a reference is the only one says nothing of what other threads did before.)
    func finish() { finished.store(true, ordering: .releasing) }

    /// Whether a lane is done with it.
    package var isFinished: Bool { finished.load(ordering: .acquiring) }

    /// Whether its room is small enough to be kept for the next use.
    package var isWorthKeeping: Bool { capacity <= Self.keptCapacityMax }

    /// The most actions for which room is kept.
    private static var keptCapacityMax: Int { 16_384 }
}
