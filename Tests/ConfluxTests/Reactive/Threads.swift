import Dispatch
import Foundation
import Synchronization
import Testing

/// Runs a function on new threads, which start at the same time, and waits until they end.
func onThreads(
    _ count: Int, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: @escaping @Sendable (Int) -> Void
) {
    let start = DispatchSemaphore(value: 0)
    let ended = DispatchGroup()
    for index in 0..<count {
        ended.enter()
        Thread {
            start.wait()
            body(index)
            ended.leave()
        }.start()
    }
    for _ in 0..<count { start.signal() }
    #expect(ended.wait(timeout: .now() + 120) == .success, sourceLocation: sourceLocation)
}

/// An event that one thread waits for and another thread triggers.
struct Happening: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func happen() { semaphore.signal() }

    func wait(sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(semaphore.wait(timeout: .now() + 30) == .success, sourceLocation: sourceLocation)
    }
}

/// Lets other threads run until a condition is true, if there is no event to wait for.
func awaitCondition(
    sourceLocation: SourceLocation = #_sourceLocation, _ condition: () -> Bool
) {
    let deadline = ContinuousClock.now + .seconds(30)
    while !condition(), ContinuousClock.now < deadline { sched_yield() }
    #expect(condition(), sourceLocation: sourceLocation)
}

/// The values that observers have seen.
final class Seen<Value: Sendable>: Sendable {
    private let guarded = Mutex<[Value]>([])

    var values: [Value] { guarded.withLock { $0 } }

    func add(_ value: Value) { guarded.withLock { $0.append(value) } }
}

/// An object that tells when it is freed.
final class Witness: Sendable {
    private let atEnd: @Sendable () -> Void

    init(atEnd: @escaping @Sendable () -> Void = {}) { self.atEnd = atEnd }

    deinit { atEnd() }

    /// Does nothing. A call of it makes a closure capture the witness.
    func stay() {}
}
