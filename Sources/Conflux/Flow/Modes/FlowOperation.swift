import Synchronization

/// Something that is under way and ends later; what depends on it is held back until then.
///
/// ```swift
/// let fetch = scope.perform { await cache.fill() }
/// scope.dispatch(.show, to: screen, after: fetch)
/// ```
///
/// It can depend only on what was there before it, so no two wait for each other. It goes on when nobody
/// has it any more.
public final class FlowOperation: Sendable {
    private struct State {
        /// How many others have to end before it begins.
        var missing: Int
        var begin: (@Sendable () -> Void)?
        var hasEnded = false
        var hooks: [@Sendable () -> Void] = []
    }

    private let state: Mutex<State>

    /// Makes an operation, which begins when others have ended; at once if they have.
    ///
    /// - Parameters:
    ///   - others: What it depends on.
    ///   - begin: Called once, on the thread on which the last of the others ends, holding no lock. What
    ///     it starts calls ``finish()``.
    init(after others: [FlowOperation], begin: @escaping @Sendable (FlowOperation) -> Void) {
        state = Mutex(State(missing: others.count + 1))
        state.withLock { $0.begin = { [self] in begin(self) } }
        for other in others { other.whenEnded { self.predecessorEnded() } }
        predecessorEnded()
    }

    /// Whether it has ended.
    public var hasEnded: Bool { state.withLock { $0.hasEnded } }

    /// Waits until it has ended. Cancelling the waiting task doesn't end the wait.
    public func end() async {
        await withCheckedContinuation { continuation in
            whenEnded { continuation.resume() }
        }
    }

    /// Has a function called once when it has ended; at once, if it has.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if !state.hasEnded { state.hooks.append(body) }
            return state.hasEnded
        }
        if isOver { body() }
    }

    private func predecessorEnded() {
        let begin = state.withLock { state -> (@Sendable () -> Void)? in
            state.missing -= 1
            guard state.missing == 0 else { return nil }
            defer { state.begin = nil }
            return state.begin
        }
        begin?()
    }

    /// Ends it, and lets begin what depends on it.
    func finish() {
        let hooks = state.withLock { state in
            state.hasEnded = true
            defer { state.hooks = [] }
            return state.hooks
        }
        for hook in hooks { hook() }
    }
}

/// The operations of a scope that follow each other.
final class FlowSeries: Sendable {
    private let last = Mutex<FlowOperation?>(nil)

    /// Adds an operation behind the last one.
    func add(
        after others: [FlowOperation], begin: @escaping @Sendable (FlowOperation) -> Void
    ) -> FlowOperation {
        // Made under the lock, which is why it must not begin there.
        let (operation, gate) = last.withLock { last in
            let gate = FlowOperation(after: []) { _ in }
            let operation = FlowOperation(
                after: others + [gate] + (last.map { [$0] } ?? []), begin: begin)
            last = operation
            return (operation, gate)
        }
        operation.whenEnded { [weak self, weak operation] in
            // The last one is not kept for ever.
            self?.last.withLock { last in
                if last === operation { last = nil }
            }
        }
        gate.finish()
        return operation
    }
}

extension Scope {
    /// Runs an asynchronous function, and tells when it has ended.
    ///
    /// - Parameters:
    ///   - others: What it waits for.
    ///   - body: Called once, in this scope, in a task of its own.
    /// - Returns: The operation, for what depends on it.
    @discardableResult
    public func perform(
        after others: FlowOperation..., body: @escaping @Sendable () async -> Void
    ) -> FlowOperation {
        let held = FlowLock.held
        return FlowOperation(after: others) { operation in self.start(body, operation, held) }
    }

    /// Runs an asynchronous function behind all earlier ones of this kind, and behind what was dispatched
    /// in mode ``DispatchMode/serial``.
    ///
    /// - Parameter body: Called once, in this scope, in a task of its own.
    /// - Returns: The operation, for what depends on it.
    @discardableResult
    public func performSerially(_ body: @escaping @Sendable () async -> Void) -> FlowOperation {
        let held = FlowLock.held
        return currentSeries.add(after: []) { operation in self.start(body, operation, held) }
    }

    /// What is dispatched here in mode `serial` follows each other.
    var currentSeries: FlowSeries { FlowLock.held(in: self)?.series ?? series }

    /// Runs it as the holder of the lock that was held where it was asked for.
    private func start(
        _ body: @escaping @Sendable () async -> Void, _ operation: FlowOperation, _ held: FlowLock?
    ) {
        Task {
            await FlowLock.$held.withValue(held) {
                await self.run { await body() }
            }
            operation.finish()
        }
    }
}
