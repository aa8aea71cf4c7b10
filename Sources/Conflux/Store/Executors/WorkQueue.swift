import Dispatch
import Foundation
import Synchronization

/// A dispatch queue, with a list of the work that was given to it and has not begun.
///
/// **Problem.** A thread of a serial queue that waits for a store keeps the queue from running what
/// the store has given to it: both would wait for ever.
///
/// **Design.** What executors give to a queue is in a list here, too. A thread of the queue that
/// has to wait runs what is in the list in the meantime (``wait(for:on:)``), in the order of the queue.
final class WorkQueue: Sendable {
    private struct Content {
        /// What has not begun.
        var works = Line<@Sendable () -> Void>()
        /// *Use*: the queue's threads that wait.
        var waiting: [DispatchSemaphore] = []
    }

    private let content = Mutex(Content())
    private let isMain: Bool
    /// Recognises code that runs on the queue, or on one that targets it.
    private let key = DispatchSpecificKey<Bool>()

    private init(isMain: Bool) {
        self.isMain = isMain
    }

    // MARK: Which queue

    /// One key for all queues, and for ever: Dispatch knows a key by its address and doesn't keep
    /// it alive.
    private static let known = DispatchSpecificKey<WorkQueue>()
    private static let making = Mutex(())

    /// The work queue of a dispatch queue: the same object each time. The dispatch queue keeps it.
    static func of(_ queue: DispatchQueue) -> WorkQueue {
        making.withLock { _ in
            if let known = queue.getSpecific(key: known) { return known }
            let made = WorkQueue(isMain: MainQueue.isSame(as: queue))
            queue.setSpecific(key: known, value: made)
            queue.setSpecific(key: made.key, value: true)
            return made
        }
    }

    /// Whether it is one of the system's global queues, whose threads never keep it from running more.
    static func isGlobal(_ queue: DispatchQueue) -> Bool {
        queue.label.hasPrefix("com.apple.root.")
    }

    /// Whether the caller runs on the queue.
    var isCurrent: Bool {
        isMain ? MainQueue.isCurrent : DispatchQueue.getSpecific(key: key) == true
    }

    // MARK: What it runs

    /// Makes the queue run a function, behind what it was given before.
    ///
    /// - Parameters:
    ///   - body: Called once, on the queue.
    ///   - queue: The queue, which isn't kept here.
    func add(_ body: @escaping @Sendable () -> Void, to queue: DispatchQueue) {
        let waiting = content.withLock { content in
            content.works.append(body)
            // Under the lock, so that the list has the queue's order.
            queue.async { _ = self.runNext() }
            return content.waiting.last
        }
        waiting?.signal()
    }

    /// Runs the oldest function that has not begun.
    ///
    /// - Returns: Whether there was one.
    private func runNext() -> Bool {
        guard let body = content.withLock({ $0.works.removeFirst() }) else { return false }
        Scope.outside { FlowLock.holding(nil, body) }
        return true
    }

    /// Waits until an action has ended. Meanwhile the thread runs what is given to those queues
    /// that it keeps busy.
    ///
    /// - Parameters:
    ///   - handle: The action's handle.
    ///   - queues: Queues that the action may need.
    static func wait(for handle: DispatchHandle, on queues: [WorkQueue]) {
        let signal = DispatchSemaphore(value: 0)
        let mine = queues.filter(\.isCurrent)
        for queue in mine { queue.content.withLock { $0.waiting.append(signal) } }
        handle.whenEnded { _ in signal.signal() }
        while !handle.hasEnded {
            if !mine.contains(where: { $0.runNext() }) { signal.wait() }
        }
        for queue in mine {
            queue.content.withLock { $0.waiting.removeAll { $0 === signal } }
        }
    }
}
