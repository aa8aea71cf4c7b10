import Dispatch
import Foundation
import Synchronization

/// Where a function runs: at once, on the main queue, on a queue of yours, or in a context of your
/// own making.
///
/// An executor chooses a place, never an order: a store hands it one run of actions at a time, and
/// a signal one run of values at a time, the next after that has returned. So even a concurrent
/// queue neither loses nor reorders anything.
///
/// ```swift
/// let store = Store<CounterState>(state: .init(), mutations: .init(), executor: .queue(.global()))
/// signal.observe(on: .mainThread).observe { print($0) }
/// ```
public struct Executor: Sendable {
    /// A function that runs the function it is given, once, at a place and time of its choosing.
    ///
    /// It is called on any thread, which the compiler doesn't check.
    public typealias Context = (@escaping @Sendable () -> Void) -> Void

    // Sendable: the code that makes a context vouches that it may be called on any thread.
    private enum Place: @unchecked Sendable {
        case immediate
        case context(Context)
    }

    private let place: Place
    /// Whether functions run on the main queue, and nowhere else.
    let isMain: Bool

    private init(place: Place, isMain: Bool = false) {
        self.place = place
        self.isMain = isMain
    }

    /// Makes an executor from a context of your own.
    ///
    /// - Parameter context: Runs each function that it is given exactly once; it may be called on
    ///   any thread, by several threads at once. A function that it drops stops everything that waits for
    ///   it: a store on such an executor commits nothing more.
    public init(_ context: @escaping Context) {
        self.init(place: .context(context))
    }

    /// Runs functions at once, on the thread that calls ``execute(_:)``.
    public static let immediate = Executor(place: .immediate)

    /// Runs functions on the main queue: at once when called there, else later.
    ///
    /// "At once" holds only while nothing that was given to this same executor is running or
    /// waiting; otherwise the function joins the main queue. So the functions given to one value
    /// run in the order given, whichever threads they come from. Each use of `mainThread` makes
    /// an executor of its own: what one of them has in progress doesn't delay another.
    ///
    /// What waits is held by the main queue, which has no bound.
    public static var mainThread: Executor {
        let gate = QueueGate(.main) { MainQueue.isCurrent }
        return Executor(place: .context { gate.execute($0) }, isMain: true)
    }

    /// Runs functions on a queue: at once when called there, else later, with the order of
    /// ``mainThread``.
    ///
    /// ``queue(_:)`` enqueues in any case.
    ///
    /// - Parameter dispatchQueue: Serial or concurrent. What waits is held by it, without a bound.
    /// - Returns: An executor that keeps the queue alive.
    public static func within(_ dispatchQueue: DispatchQueue) -> Executor {
        let token = QueueToken.of(dispatchQueue)
        let gate = QueueGate(dispatchQueue) { QueueToken.ofCurrentQueue === token }
        return Executor(
            place: .context { gate.execute($0) }, isMain: MainQueue.isSame(as: dispatchQueue))
    }

    /// Adds functions to a queue, also when called on that queue.
    ///
    /// - Parameter dispatchQueue: Serial or concurrent. What waits is held by it, without a bound.
    /// - Returns: An executor that keeps the queue alive.
    public static func queue(_ dispatchQueue: DispatchQueue) -> Executor {
        Executor(
            place: .context { dispatchQueue.async(execute: $0) },
            isMain: MainQueue.isSame(as: dispatchQueue))
    }

    /// Runs a function, now or later, as this executor decides.
    ///
    /// - Parameter function: Called once, in the executor's context. The compiler doesn't check that
    ///   what it uses may be used there.
    public func execute(_ function: @escaping () -> Void) {
        switch place {
        case .immediate: function()
        case .context(let context): context(callableOnAnyThread(function))
        }
    }

    /// Whether functions run at once on the caller's thread, so that a caller may run its own code
    /// in place and needs no function value.
    package var isImmediate: Bool {
        if case .immediate = place { true } else { false }
    }
}

/// Runs functions at once on a queue while none is in progress, and else through the queue.
private final class QueueGate: Sendable {
    private let queue: DispatchQueue
    /// Whether the caller runs on the queue.
    private let isCurrent: @Sendable () -> Bool
    /// How many functions were given and have not returned.
    ///
    /// Raised before a function is enqueued and lowered after it returned. Hence, zero on the
    /// queue means that nothing given earlier is still to come, and running at once keeps the order.
    private let inProgress = Atomic<Int>(0)

    init(_ queue: DispatchQueue, isCurrent: @escaping @Sendable () -> Bool) {
        self.queue = queue
        self.isCurrent = isCurrent
    }

    func execute(_ function: @escaping @Sendable () -> Void) {
        if isCurrent(),
            inProgress.compareExchange(
                expected: 0, desired: 1, ordering: .acquiringAndReleasing
            ).exchanged
        {
            function()
            inProgress.subtract(1, ordering: .acquiringAndReleasing)
            return
        }
        inProgress.add(1, ordering: .acquiringAndReleasing)
        queue.async { [self] in
            function()
            inProgress.subtract(1, ordering: .acquiringAndReleasing)
        }
    }
}

/// Recognises code that runs on the main queue.
package enum MainQueue {
    private static let mark: DispatchSpecificKey<Bool> = {
        let key = DispatchSpecificKey<Bool>()
        DispatchQueue.main.setSpecific(key: key, value: true)
        return key
    }()

    /// Whether the caller has the main queue to itself.
    ///
    /// The mark alone recognises other threads that serve the main queue, as on Linux after the
    /// first suspension of an asynchronous `main`. The thread test alone recognises the main thread
    /// inside a `sync` on another queue. As long as the main thread runs user code, nobody else
    /// serves the main queue, so either is proof.
    package static var isCurrent: Bool {
        DispatchQueue.getSpecific(key: mark) == true || Thread.isMainThread
    }

    /// Whether a queue is the main queue. On Linux `DispatchQueue.main` is a new object each time.
    fileprivate static func isSame(as queue: DispatchQueue) -> Bool {
        queue.getSpecific(key: mark) == true
    }
}

/// Tells a queue from others for those who run on it.
private final class QueueToken: Sendable {
    /// One key for all, and for ever: Dispatch knows a key by its address and doesn't keep it.
    private static let key = DispatchSpecificKey<QueueToken>()
    private static let making = Mutex(())

    /// The queue's token, the same one each time.
    static func of(_ queue: DispatchQueue) -> QueueToken {
        making.withLock { _ in
            if let token = queue.getSpecific(key: key) { return token }
            let token = QueueToken()
            queue.setSpecific(key: key, value: token)
            return token
        }
    }

    /// The token of the queue that this code runs on, or of the one that it targets.
    static var ofCurrentQueue: QueueToken? { DispatchQueue.getSpecific(key: key) }
}
