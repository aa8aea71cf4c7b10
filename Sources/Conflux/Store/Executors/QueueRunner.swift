import Dispatch
import Foundation
import Synchronization

/// Runs functions on a queue: at once while none is in progress, and otherwise through the queue.
final class QueueRunner: Sendable {
    private let queue: DispatchQueue
    private let work: WorkQueue
    /// How many functions were given and have not returned.
    ///
    /// Raised before a function is enqueued and lowered after it returned. Hence, zero on the
    /// queue means that nothing given earlier is still to come, and running at once keeps the order.
    private let inProgress = Atomic<Int>(0)

    init(_ queue: DispatchQueue, _ work: WorkQueue) {
        self.queue = queue
        self.work = work
    }

    func execute(_ function: @escaping @Sendable () -> Void) {
        if begin() {
            function()
            return end()
        }
        inProgress.add(1, ordering: .acquiringAndReleasing)
        work.add(
            { [self] in
                function()
                end()
            }, to: queue)
    }

    /// Begins something on the queue at once, if the caller is there and nothing is in progress.
    ///
    /// - Returns: Whether it has begun. If so, the caller has to call ``end()``.
    func begin() -> Bool {
        work.isCurrent
            && inProgress.compareExchange(
                expected: 0, desired: 1, ordering: .acquiringAndReleasing
            ).exchanged
    }

    func end() {
        inProgress.subtract(1, ordering: .acquiringAndReleasing)
    }
}

/// Recognises code that runs on the main queue.
package enum MainQueue {
    private static let key: DispatchSpecificKey<Bool> = {
        let made = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: made, value: true)
        return made
    }()

    /// The main queue, with its list of work.
    static let work = WorkQueue.of(.main)

    /// Whether the caller has the main queue to itself.
    ///
    /// The key alone recognises other threads that serve the main queue, as on Linux after the
    /// first suspension of an asynchronous `main`. The thread test alone recognises the main thread
    /// inside a `sync` on another queue. As long as the main thread runs user code, nobody else
    /// serves the main queue, so either is proof.
    package static var isCurrent: Bool {
        ThreadMark.current.pointee.isMain || DispatchQueue.getSpecific(key: key) == true
    }

    /// Whether a queue is the main queue. On Linux `DispatchQueue.main` is a new object each time.
    static func isSame(as queue: DispatchQueue) -> Bool {
        queue.getSpecific(key: key) == true
    }
}
