import Foundation

/// Knows which threads are running user code on behalf of a delivery.
///
/// Queues of senders are bounded, and a sender waits at the bound. A thread that is itself
/// delivering must not: others may be waiting for it, and two that wait for each other never go on.
/// So every place that runs user code on behalf of somebody who may be waited for brackets it with
/// ``enter()`` and ``leave()``, and asks ``isInside`` before it waits.
@usableFromInline
package enum DeliveryThread {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key, nil)
        precondition(status == 0, "no thread-specific key is left (error \(status))")
        return key
    }()

    /// How deeply the thread is inside deliveries, kept as the bits of a pointer.
    private static var depth: Int {
        get { Int(bitPattern: pthread_getspecific(key)) }
        set { _ = pthread_setspecific(key, UnsafeRawPointer(bitPattern: newValue)) }
    }

    /// Notes that this thread starts to run user code that others may wait for.
    @usableFromInline
    package static func enter() { depth += 1 }

    /// Ends the innermost ``enter()`` of this thread.
    @usableFromInline
    package static func leave() { depth -= 1 }

    /// Whether this thread is between ``enter()`` and ``leave()``, so that it must not wait.
    @usableFromInline
    package static var isInside: Bool { depth > 0 }
}
