/// A value that threads read and change, and whose changes can be observed.
///
/// ```swift
/// let count = Variable(0)
/// count.signal.observe { print($0) }  // prints "0"
/// count.value = 1                     // prints "1"
/// ```
public final class Variable<Value> {
    @usableFromInline
    let broadcaster: Broadcaster<Value, Value>

    /// Makes a variable.
    ///
    /// - Parameter value: The first value.
    public init(_ value: Value) {
        broadcaster = Broadcaster(holding: value)
    }

    /// The latest value.
    ///
    /// Setting it tells observers every change once, in the order in which the values were set, as
    /// ``Sink/send(value:)`` does: on this thread before the setter returns, or soon after by the
    /// thread that is telling them already. At most 1,024 changes wait for that one; then other
    /// threads wait, for a second at most if nothing moves, and a thread that is itself delivering
    /// never does.
    ///
    /// `value += 1` is a read and then a write, between which other threads may write.
    @inlinable
    public var value: Value {
        get { broadcaster.held }
        set { broadcaster.send(newValue, holding: newValue) }
    }

    /// The latest value, on the thread that observes and before `observe` returns, and then every
    /// change. The signal doesn't retain the variable itself.
    public var signal: Signal<Value> {
        Signal { [broadcaster] observation, send in
            broadcaster.add(observation, send, firstValue: { $0 })
        }
    }

    /// This variable for those who may only read.
    public var constant: Constant<Value> {
        Constant(variable: self)
    }
}

// All state is inside the broadcaster's lock; observers get values on any thread, hence the
// condition.
extension Variable: @unchecked Sendable where Value: Sendable {}
