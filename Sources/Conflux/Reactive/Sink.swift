/// A source of values that you send by hand.
///
/// ```swift
/// let sink = Sink<Int>()
/// sink.signal.observe { print($0) }
/// sink.send(value: 100)  // prints "100"
/// ```
///
/// Its signal holds no value: an observer sees what is sent after it started to observe.
public final class Sink<Value> {
    @usableFromInline
    let broadcaster = Broadcaster<Value, Void>(holding: ())

    /// Makes a sink that nobody observes.
    public init() {}

    /// The values that are sent. The signal doesn't retain the sink itself.
    public var signal: Signal<Value> {
        Signal { [broadcaster] observation, send in
            broadcaster.add(observation, send)
        }
    }

    /// Sends a value to everyone who observes now.
    ///
    /// Observers run on this thread, in the order in which they began, before this returns; unless
    /// another thread is sending, or this is called by an observer of this sink: then the one who
    /// is sending delivers this value after its own, and this returns at once.
    ///
    /// At most 1,024 values wait in that way. Then other threads wait here for space, for a second
    /// at most if none comes; a thread that is itself delivering something never does. Their values
    /// are let in then.
    ///
    /// - Parameter value: What to send.
    @inlinable
    public func send(value: Value) {
        broadcaster.send(value, holding: ())
    }
}

// All state is inside the broadcaster's lock; observers get values on any thread, hence the
// condition.
extension Sink: @unchecked Sendable where Value: Sendable {}
