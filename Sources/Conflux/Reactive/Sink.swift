/// A source of values that you send by hand.
///
/// ```swift
/// let sink = Sink<Int>()
/// sink.signal.observe { print($0) }
/// sink.send(value: 100)  // prints "100"
/// ```
///
/// Its signal holds no value: an observer gets the values sent after it started to observe.
public final class Sink<Value> {
    @usableFromInline
    let broadcaster = Broadcaster<Value, Void>(holding: ())

    /// Makes a sink that nobody observes.
    public init() {}

    /// The values that are sent. The signal doesn't retain the sink itself.
    public var signal: Signal<Value> {
        .of { [broadcaster] in broadcaster.add($0, $1) }
    }

    /// Sends a value to all current observers.
    ///
    /// Observers run on this thread, in the order in which they began, before this returns. If
    /// another thread is sending, this one waits its turn, for as long as the other one makes progress, and for
    /// a second at most otherwise. If this is called by an observer, of this sink or of anything else, and the sink is
    /// busy, the value is delivered when the present one has been. Observers run in the scope and under the
    /// ``FlowLock`` of this call in either case.
    ///
    /// At most 1,024 values wait. At that bound, threads wait for a second at most. A thread that is itself
    /// delivering something never waits.
    ///
    /// - Parameter value: What to send.
    @inlinable
    public func send(value: Value) {
        broadcaster.send(value, holding: ())
    }
}

extension Sink: StateSource {
    func watch(isOver: Bool) { broadcaster.watch(isOver: isOver) }
}

// All state is inside the broadcaster's lock; observers get values on any thread, hence the
// condition.
extension Sink: @unchecked Sendable where Value: Sendable {}
