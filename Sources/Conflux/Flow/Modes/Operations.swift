extension Scope {
    /// Runs an asynchronous function. Dispatches and operations that depend on it can wait for its
    /// handle.
    ///
    /// ```swift
    /// let fetch = scope.perform { await cache.fill() }
    /// scope.dispatch(.show, to: screen, after: fetch)
    /// ```
    ///
    /// If you call this in the completion of a dispatch in mode ``DispatchMode/serial``, the
    /// function belongs to that dispatch's cascade, with all that it dispatches until it ends.
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
        start(Undertaking(in: self, after: others, isSerial: false, isOperation: true), body)
    }

    /// Runs an asynchronous function after all earlier ones of this kind, and after all dispatches in
    /// mode ``DispatchMode/serial`` with all that follows from them.
    ///
    /// Its dispatches and operations follow from it until it ends: later serial work waits for
    /// them, too. So the function may wait for all of them, but not for its own handle.
    ///
    /// - Parameter body: Called once, in this scope, in a task of its own.
    /// - Returns: The operation's handle, like that of ``perform(after:body:)``.
    @discardableResult
    public func performSerially(_ body: @escaping @Sendable () async -> Void) -> DispatchHandle {
        start(Undertaking(in: self, after: [], isSerial: true, isOperation: true), body)
    }

    /// The series of what is dispatched here in mode `serial`.
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
