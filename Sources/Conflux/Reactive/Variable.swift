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
    /// Setting it delivers every change to observers once, in the order in which the values were set, as
    /// ``Sink/send(value:)`` does: on this thread before the setter returns, or soon after if
    /// another thread is delivering already.
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
        .of { [broadcaster] in broadcaster.addWithFirstValue($0, $1) }
    }

    /// This variable, to be read and observed only.
    public var constant: Constant<Value> {
        Constant(variable: self)
    }
}

extension Variable: StateSource {
    func watch(isOver: Bool) { broadcaster.watch(isOver: isOver) }
}

// All state is inside the broadcaster's lock; observers get values on any thread, hence the
// condition.
extension Variable: @unchecked Sendable where Value: Sendable {}
