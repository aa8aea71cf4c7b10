import ConfluxVocabulary
import Dispatch
import Synchronization

/// Keeps the deadlines of all waits, with one timer for all of them.
///
/// Most waits end long before their deadline. A timer for each would wake a thread of the system twice: when it is set, and
/// when it fires for nobody.
///
/// *Invariant*: the timer fires at the earliest deadline, or before it.
final class Deadlines: @unchecked Sendable {  // The timer is set under the lock.
    static let shared = Deadlines()

    private struct Due: Comparable {
        let at: UInt64
        let number: UInt64

        static func < (one: Due, other: Due) -> Bool { one.at < other.at }
    }

    private struct Content {
        /// What happens at each deadline, by its number. Those of waits that have ended are not there.
        var bodies: [UInt64: @Sendable () -> Void] = [:]
        /// All deadlines, and some of waits that have ended.
        var heap = Heap<Due>()
        var lastNumber: UInt64 = 0
        /// When the timer fires.
        var firesAt = UInt64.max
    }

    private let content = Mutex(Content())
    private let timer = DispatchSource.makeTimerSource(queue: .global())

    /// How many deadlines of waits that have ended stay in the heap at least, before these are removed.
    private static let endedMax = 64

    private init() {
        timer.setEventHandler { [unowned self] in fire() }
        timer.activate()
    }

    /// Adds a deadline.
    ///
    /// - Parameters:
    ///   - due: The uptime in nanoseconds.
    ///   - body: Called then, unless it was forgotten.
    /// - Returns: The number of the deadline.
    func add(at due: UInt64, _ body: @escaping @Sendable () -> Void) -> UInt64 {
        content.withLock { content in
            content.lastNumber += 1
            content.bodies[content.lastNumber] = body
            content.heap.insert(Due(at: due, number: content.lastNumber))
            set(&content)
            return content.lastNumber
        }
    }

    /// Removes a deadline, if it is still to come.
    func forget(_ number: UInt64) {
        // Released outside of the lock, with what it holds.
        let body = content.withLock { content in
            let body = content.bodies.removeValue(forKey: number)
            if content.heap.count > 2 * content.bodies.count + Self.endedMax {
                content.heap.removeAll { content.bodies[$0.number] == nil }
            }
            return body
        }
        _ = body
    }

    private func fire() {
        let due = content.withLock { content in
            content.firesAt = .max
            let due = takeDue(at: DispatchTime.now().uptimeNanoseconds, from: &content)
            set(&content)
            return due
        }
        // Each on a thread of its own, so that none waits for another.
        for body in due { DispatchQueue.global().async(execute: body) }
    }

    /// Sets the timer, if it would fire too late.
    private func set(_ content: inout Content) {
        guard let first = content.heap.first, first.at < content.firesAt else { return }
        content.firesAt = first.at
        timer.schedule(
            deadline: DispatchTime(uptimeNanoseconds: first.at), leeway: .milliseconds(1))
    }

    /// Removes what is due, and returns what is to be called.
    private func takeDue(at now: UInt64, from content: inout Content) -> [@Sendable () -> Void] {
        var due: [@Sendable () -> Void] = []
        while let first = content.heap.first,
            first.at <= now || content.bodies[first.number] == nil
        {
            if let body = content.bodies.removeValue(forKey: first.number) { due.append(body) }
            _ = content.heap.popFirst()
        }
        return due
    }
}

/// A deadline that was set by ``Swift/Duration/whenOver(_:)``.
package struct Deadline: Sendable {
    fileprivate let number: UInt64

    /// Ends it before it comes. Call it when a wait has ended.
    package func forget() { Deadlines.shared.forget(number) }
}

extension Duration {
    /// Calls a function once this time is over. All deadlines of waits are kept by this.
    ///
    /// - Parameter body: Called on a thread of the system, within a few milliseconds; not at all if that is never.
    /// - Returns: The deadline; nil if it never comes.
    @discardableResult
    package func whenOver(_ body: @escaping @Sendable () -> Void) -> Deadline? {
        let due = DispatchTime.now() + dispatchInterval
        guard due != .distantFuture else { return nil }
        return Deadline(number: Deadlines.shared.add(at: due.uptimeNanoseconds, body))
    }
}
