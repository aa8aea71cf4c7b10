import ConfluxVocabulary

extension Scope {
    /// Runs an asynchronous function. Dispatches and operations that depend on it can wait for its
    /// handle.
    ///
    /// ```swift
    /// let fetch = scope.perform { await cache.fill() }
    /// scope.dispatch(.show, to: screen, after: fetch)
    /// ```
    ///
    /// - Parameters:
    ///   - others: What it waits for: dispatches of any kind, and other operations.
    ///   - body: Called once, in this scope, in a task of its own.
    /// - Returns: The operation's handle. You may drop it. Its receipt names no log, and has the
    ///   sequence number zero.
    @discardableResult
    public func perform(
        after others: DispatchHandle..., body: @escaping @Sendable () async -> Void
    ) -> DispatchHandle {
        perform(after: others, isSerial: false, body)
    }

    /// Runs an asynchronous function after all earlier ones of this kind, and after all dispatches in
    /// mode ``DispatchMode/serial``. Later ones wait for it, so it must not wait for any of them.
    ///
    /// - Parameter body: Called once, in this scope, in a task of its own.
    /// - Returns: The operation's handle, like that of ``perform(after:body:)``.
    @discardableResult
    public func performSerially(_ body: @escaping @Sendable () async -> Void) -> DispatchHandle {
        perform(after: [], isSerial: true, body)
    }

    private func perform(
        after others: [DispatchHandle], isSerial: Bool, _ body: @escaping @Sendable () async -> Void
    ) -> DispatchHandle {
        undertake(after: others, isSerial: isSerial) { end in
            // The task inherits the lock.
            Task {
                await self.run { await body() }
                end(.committed(.ofNothing))
            }
        }
    }
}

extension Receipt {
    /// The receipt of something that commits nothing itself.
    static var ofNothing: Receipt {
        Receipt(log: nil, epoch: .none, sequence: .zero, timestamp: WallClock.now)
    }
}
