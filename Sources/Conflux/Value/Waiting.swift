extension ReadableStore {
    /// Waits until the value satisfies a condition.
    ///
    /// ```swift
    /// let stock = try await stock.value(within: .seconds(2)) { $0.left > 10 }
    /// ```
    ///
    /// Nothing is polled: the condition is called with the present value, and then after each action that was applied.
    ///
    /// - Parameters:
    ///   - limit: How long to wait; nil to wait as long as it takes.
    ///   - isWanted: The condition. It is called in the store's lane, holding no lock.
    /// - Returns: The first value that satisfies the condition. The store may have another one by now.
    /// - Throws: ``StoreError``: `timedOut` after `limit`; `cancelled` when the waiting task was cancelled; `ended` when
    ///   nothing changes the store any more, since it was dropped, or closed, or its node was.
    public func value(
        within limit: Duration? = nil, where isWanted: @escaping @Sendable (State.Value) -> Bool
    ) async throws(StoreError) -> State.Value {
        let (values, found) = AsyncStream.makeStream(
            of: State.Value.self, bufferingPolicy: .bufferingOldest(1))
        let isLate = AtomicReference(false)
        let matches: Signal<State.Value> = _store.looking { send in
            { if isWanted($0.held) { send($0.held) } }
        }
        let observation = matches.begin(
            Observation(whenSourceEnds: { found.finish() }), on: nil
        ) { value in
            found.yield(value)
            found.finish()
        }
        defer { observation.dispose() }
        let deadline = limit?.whenOver {
            isLate.value = true
            found.finish()
        }
        defer { deadline?.forget() }
        for await value in values { return value }
        if Task.isCancelled {
            throw StoreError(
                .cancelled, "The task was cancelled while it waited. Wait in another one.")
        }
        if isLate.value, let limit {
            throw StoreError(
                .timedOut,
                "No value of \(State.title) was as wanted within \(limit). Wait longer, or check the condition."
            )
        }
        throw StoreError(
            .ended,
            "Nothing changes this store of \(State.title) any more. Open it again, and wait there.")
    }
}
