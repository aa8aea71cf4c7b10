extension Scope {
    /// Runs an asynchronous function. The handle says when it has ended, so that what depends on it can be
    /// held back until then.
    ///
    /// ```swift
    /// let fetch = scope.perform { await cache.fill() }
    /// scope.dispatch(.show, to: screen, after: fetch)
    /// ```
    ///
    /// Where a dispatch in mode ``DispatchMode/serial`` tells its end, the function belongs to the cascade of
    /// that, with all that it dispatches until it ends.
    ///
    /// - Parameters:
    ///   - others: What it waits for: dispatches of any kind, and other operations.
    ///   - body: Called once, in this scope, in a task of its own.
    /// - Returns: The operation's handle. It may be dropped. Its receipt is of no log, and has the sequence
    ///   number zero.
    @discardableResult
    public func perform(
        after others: DispatchHandle..., body: @escaping @Sendable () async -> Void
    ) -> DispatchHandle {
        start(Undertaking(in: self, after: others, isSerial: false, isOperation: true), body)
    }

    /// Runs an asynchronous function behind all earlier ones of this kind, and behind what was dispatched
    /// in mode ``DispatchMode/serial``, with all that follows from that.
    ///
    /// What it dispatches, or begins as an operation, until it ends follows from it: what is serial behind it
    /// waits for that, too. So it may wait for all of that itself, and not for its own handle.
    ///
    /// - Parameter body: Called once, in this scope, in a task of its own.
    /// - Returns: The operation's handle, as of ``perform(after:body:)``.
    @discardableResult
    public func performSerially(_ body: @escaping @Sendable () async -> Void) -> DispatchHandle {
        start(Undertaking(in: self, after: [], isSerial: true, isOperation: true), body)
    }

    /// What is dispatched here in mode `serial` follows each other.
    var currentSeries: FlowSeries { FlowLock.held(in: self)?.series ?? series }

    private func start(
        _ undertaking: Undertaking, _ body: @escaping @Sendable () async -> Void
    ) -> DispatchHandle {
        undertaking.whenReady {
            Task {
                await FlowLock.$held.withValue(undertaking.held) {
                    await self.run { await Cascade.run(in: undertaking.cascade, of: self, body) }
                }
                undertaking.end(.ended)
            }
        }
        return undertaking.handle
    }
}
