import Foundation

/// A value that threads read and change one at a time.
///
/// ```swift
/// let numbers = AtomicReference([1, 2])
/// let count = numbers.modify { numbers in
///     numbers.append(3)
///     return numbers.count
/// }
/// ```
///
/// Unlike everything else here, ``synchronized(_:)`` and ``modify(_:)`` hold a lock while your
/// function runs: keep it short, and call nothing in it that may wait for another thread.
public final class AtomicReference<Value> {
    private let lock: any NSLocking
    private var guarded: Value

    /// Makes a reference to a value.
    ///
    /// - Parameters:
    ///   - value: The first value.
    ///   - recursive: Whether the thread inside ``synchronized(_:)`` may use the reference again.
    ///     If false, that deadlocks. The value that ``modify(_:)`` is changing can't be used
    ///     through the reference in either case.
    public init(_ value: Value, recursive: Bool = false) {
        lock = recursive ? NSRecursiveLock() : NSLock()
        guarded = value
    }

    /// The value at this moment.
    ///
    /// `value += 1` is a read and then a write, between which other threads may write;
    /// ``modify(_:)`` leaves them no gap.
    public var value: Value {
        get { synchronized { $0 } }
        set { swap(newValue) }
    }

    /// Reads the value under the lock.
    ///
    /// - Parameter function: Called once, at once, with the value.
    /// - Returns: What the function returns.
    /// - Throws: What the function throws.
    @discardableResult
    public func synchronized<Result>(_ function: (Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try function(guarded)
    }

    /// Changes the value under the lock.
    ///
    /// - Parameter function: Called once, at once, with the value to change. What it changed before
    ///   it throws stays changed.
    /// - Returns: What the function returns.
    /// - Throws: What the function throws.
    @discardableResult
    public func modify<Result>(_ function: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try function(&guarded)
    }

    /// Puts another value in place of the value.
    ///
    /// - Parameter newValue: The value from now on.
    /// - Returns: The value until now. It is released outside the lock.
    @discardableResult
    public func swap(_ newValue: Value) -> Value {
        var previous = newValue
        modify { Swift.swap(&$0, &previous) }
        return previous
    }
}

// `lock` guards `guarded`, and `lock` itself never changes.
extension AtomicReference: @unchecked Sendable where Value: Sendable {}
