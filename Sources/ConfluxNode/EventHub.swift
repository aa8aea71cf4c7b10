import Synchronization

/// Gives every reader the node's events, each in a bounded buffer of its own.
final class EventHub: Sendable {
    private struct Content {
        var readers: [Int: AsyncStream<NodeEvent>.Continuation] = [:]
        var nextReader = 0
        var isFinished = false
    }

    private let state = Mutex(Content())
    private let eventsMax: Int

    init(eventsMax: Int) {
        self.eventsMax = eventsMax
    }

    /// A stream of the events from now on. A slow reader loses the oldest events.
    func stream() -> AsyncStream<NodeEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: NodeEvent.self, bufferingPolicy: .bufferingNewest(eventsMax))
        let number = state.withLock { state -> Int? in
            guard !state.isFinished else { return nil }
            state.nextReader += 1
            state.readers[state.nextReader] = continuation
            return state.nextReader
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.readers.removeValue(forKey: number) }
        }
        return stream
    }

    func send(_ event: NodeEvent) {
        let readers = state.withLock { Array($0.readers.values) }
        for reader in readers { reader.yield(event) }
    }

    func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            defer { state.readers = [:] }
            return Array(state.readers.values)
        }
        for reader in readers { reader.finish() }
    }
}
