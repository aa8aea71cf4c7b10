import ConfluxVocabulary
import Synchronization

/// A run of ordered actions for one store: filled by one thread, handed to the store's lane once,
/// and emptied there. Each action is made in place and moved out of the run, so none is copied.
///
/// *Invariant*: the actions from `head` up to the number of contexts are initialised.
// Sendable: one thread has it at a time. Actions may be committed on another thread: that is the
// contract of `State.Action`.
package final class OrderedRun<S: State>: @unchecked Sendable {
    // Unchecked exclusivity: one thread has it at a time, and no access lasts while another function is called.

    @exclusivity(unchecked) @usableFromInline
    package private(set) var actions: UnsafeMutablePointer<S.Action>
    @exclusivity(unchecked) @usableFromInline package private(set) var capacity: Int
    /// The actions before this index have been moved out.
    @exclusivity(unchecked) private var head = 0
    /// The place of each action, in the log's order.
    @exclusivity(unchecked) @usableFromInline package var contexts: [ActionContext] = []

    /// See ``isFinished``.
    private let finished = Atomic(false)

    /// Makes an empty run.
    ///
    /// - Parameter capacity: How many actions fit in before it grows.
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
        // To advance one pointer asks for the action's type once; to index would ask each time.
        var next = actions + head
        for index in head..<contexts.count {
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
