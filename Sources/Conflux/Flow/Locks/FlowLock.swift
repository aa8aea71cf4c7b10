/// Pauses the flow of a scope: while it is held, only actions that its holder dispatches reach a
/// store.
///
/// ```swift
/// let lock = Scope.current.lock()
/// store.actions.increment()               // waits
/// lock.run { store.actions.reset() }      // passes
/// lock.release()                          // now the first one does, too
/// ```
///
/// Actions of others are parked, and pass in order once no lock is left. The oldest of several locks is in
/// force: actions of a newer lock's holder wait for their turn. A ``DispatchHandle/receipt(within:)`` waits as long
/// as its action does. Actions dispatched before the lock was taken come before those of its holder. In a mode
/// that returns at once (``DispatchMode``), these are the actions that had joined their store's line by then.
///
/// A lock may be released at any time and on any thread, even inside an observer. It is also released with
/// its last reference; a waiting action of its holder counts as one. What its holder dispatched before the
/// release comes before the actions that waited.
///
/// A lock pauses actions dispatched in this process. Entries that a node's stores get from the log still
/// pass, and so do actions that another thread was sending to the log when the lock was taken.
public final class FlowLock: Sendable {
    @TaskLocal static var held: FlowLock?

    private let scope: Scope
    let id: UInt64
    /// The series of the holder's serial work. It does not follow the serial work of others, which
    /// this lock pauses.
    let series = FlowSeries()
    private var gate: FlowGate { scope.gate }

    fileprivate init(_ scope: Scope, _ reference: Reference) {
        self.scope = scope
        let gate = scope.gate
        id = gate.number()
        // Set before anybody else has the reference.
        reference.lock = self
        gate.take(id, reference)
    }

    deinit {
        gate.release(id)
    }

    /// Whether it has not been released.
    fileprivate var isHeld: Bool { gate.isHeld(id) }

    /// The lock of a scope that the current code holds, if any.
    static func held(in scope: Scope) -> FlowLock? {
        held.flatMap { $0.scope === scope ? $0 : nil }
    }

    /// Runs code as the holder of a lock, or of none.
    static func holding(_ lock: FlowLock?, _ body: () -> Void) {
        if held === lock { body() } else { $held.withValue(lock, operation: body) }
    }

    /// Ends the lock, and resumes the actions that waited for it: a few of them on this thread.
    /// Later calls do nothing.
    public func release() {
        gate.release(id)
    }

    /// Runs code as the lock's holder: the actions that it dispatches pass.
    ///
    /// Actions that it causes on the same thread also pass, such as those of an observer of a store
    /// on `.immediate`. On other executors they wait, unless they run under the lock themselves.
    ///
    /// - Parameter body: Runs once, before this returns.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    @discardableResult
    public func run<Result>(_ body: () throws -> Result) rethrows -> Result {
        try FlowLock.$held.withValue(self, operation: body)
    }

    /// Runs asynchronous code as the lock's holder, with the tasks that it starts, except detached ones.
    ///
    /// - Parameters:
    ///   - isolation: The actor that the body runs on: the caller's.
    ///   - body: Runs once, before this returns.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    @discardableResult
    public func run<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await FlowLock.$held.withValue(self, operation: body, isolation: isolation)
    }

    /// Waits until no older lock is held, and all earlier actions in stores' lines are committed. From
    /// then on only the holder, and entries that nodes get from the log, change anything here. If the lock
    /// is released meanwhile, the wait ends when the flow resumes.
    ///
    /// Do not wait for it where a store's commit waits for the caller. Cancelling the waiting task doesn't
    /// end the wait.
    ///
    /// A task that has taken an older lock by ``Scope/lock()`` and waits here for its own release waits for
    /// ever, unless other code releases that lock.
    public func inForce() async {
        await withCheckedContinuation { continuation in
            // Passes as the holder's: behind what an older lock pauses, and what the holder still
            // has parked.
            gate.pass(holding: id) { [scope] _ in
                scope.whenStill { _ in continuation.resume() }
            }
        }
    }

    /// A weak reference to a lock.
    // Sendable: written once, before anybody else has it.
    final class Reference: @unchecked Sendable {
        fileprivate(set) weak var lock: FlowLock?
    }
}

extension Scope {
    /// Takes a dispatch past the gate: at once, or as soon as nothing pauses it. Either way it runs
    /// as the holder of the lock that the current code holds.
    ///
    /// - Parameter job: Called once, on this thread or later, holding no lock.
    func pass(_ job: @escaping FlowGate.Job) {
        let held = FlowLock.held
        gate.pass(holding: FlowLock.held(in: self)?.id) { placed in
            FlowLock.holding(held) { job(placed) }
        }
    }

    /// Pauses the flow of this scope. Returns at once, even if another lock is in force.
    ///
    /// - Returns: The lock. It is held as long as this object is referenced.
    public func lock() -> FlowLock {
        FlowLock(self, FlowLock.Reference())
    }

    /// Runs code while the flow of this scope is paused for all others.
    ///
    /// ```swift
    /// try await Scope.current.withLock { _ in
    ///     try await store.dispatch(.begin).receipt()
    ///     try await store.dispatch(.end).receipt()      // nothing comes between
    /// }
    /// ```
    ///
    /// Inside another such body, or inside ``FlowLock/run(_:)``, the body runs under that lock. Outside
    /// `run`, a lock that the same task has taken by ``lock()`` counts as an older one, as in
    /// ``FlowLock/inForce()``.
    ///
    /// Cancelling the waiting task ends neither the wait for older locks nor the body.
    ///
    /// - Parameters:
    ///   - isolation: The actor that the body runs on: the caller's.
    ///   - body: Runs once, as the holder, when the lock is in force. The lock is released when it ends.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    @discardableResult
    public func withLock<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: (FlowLock) async throws -> Result
    ) async rethrows -> Result {
        if let held = FlowLock.held(in: self), held.isHeld {
            await held.inForce()
            return try await body(held)
        }
        let lock = lock()
        defer { lock.release() }
        await lock.inForce()
        return try await lock.run(isolation: isolation) { try await body(lock) }
    }

    /// The lock that is in force; nil when the flow isn't paused. An observer that runs under the lock
    /// releases the lock through it.
    public var lockInForce: FlowLock? { gate.lockInForce }
}
