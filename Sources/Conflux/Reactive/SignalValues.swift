extension Signal where Value: Sendable {
    /// The values as an asynchronous sequence that keeps the newest 64 for a slow reader.
    ///
    /// ```swift
    /// for await count in variable.signal.values { print(count) }
    /// ```
    ///
    /// See ``values(keepingNewest:)``.
    public var values: AsyncStream<Value> { values(keepingNewest: 64) }

    /// The values as an asynchronous sequence, from this call on.
    ///
    /// The observation begins with this call, and ends when the loop's task is cancelled or the
    /// sequence is released. The sequence ends on cancellation, and after its last value when no
    /// more can come: the source has been released, or nothing changes the observed store any more, because it was
    /// dropped or its node was closed. A variable's latest value comes first.
    ///
    /// - Parameter count: How many unread values to keep, at least 1. At that bound each new value
    ///   replaces the oldest unread one; a sender never waits. To read only the latest value of a
    ///   variable, keep 1.
    /// - Returns: A sequence to iterate once, by one task.
    public func values(keepingNewest count: Int) -> AsyncStream<Value> {
        precondition(count >= 1, "a sequence that keeps \(count) values would never have one")
        let (stream, continuation) = AsyncStream.makeStream(
            of: Value.self, bufferingPolicy: .bufferingNewest(count))
        let source = SignalValuesSource(continuation: continuation)
        let isOver = AtomicReference(false)
        let observation = Observation(whenSourceEnds: {
            isOver.value = true
            continuation.finish()
        })
        let subscription = begin(observation, on: nil) { source.continuation.yield($0) }
        continuation.onTermination = { _ in subscription.dispose() }
        // The sequence may have ended before it knew the subscription.
        if isOver.value { subscription.dispose() }
        return stream
    }
}

/// Ends the sequence when the observer that holds this is released: nothing can send any more.
private final class SignalValuesSource<Value: Sendable>: Sendable {
    let continuation: AsyncStream<Value>.Continuation

    init(continuation: AsyncStream<Value>.Continuation) {
        self.continuation = continuation
    }

    deinit {
        continuation.finish()
    }
}
