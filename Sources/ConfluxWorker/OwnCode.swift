import ConfluxNode
import Synchronization

/// A program's own code in a worker: a task that begins once all stores are open, and that is cancelled when the worker
/// is to end.
package final class OwnCode: Sendable {
    /// Gets the node, and a function that says that the code is ready.
    typealias Body = @Sendable (Node, @escaping @Sendable () -> Void) async throws -> Void

    private struct Content {
        var task: Task<Void, Never>?
        var isReady = false
        var isCancelled = false
        /// What it threw before it was cancelled.
        var error: (any Error)?
    }

    /// How long a worker that ends waits for the code.
    private static let endPatience = Duration.seconds(2)

    private let body: Body
    private let state = Mutex(Content())
    /// Ends when nobody needs to wait any more until the code is ready.
    private let (readiness, readied) = AsyncStream.makeStream(of: Void.self)

    init(_ body: @escaping Body) { self.body = body }

    /// Whether it has said that it is ready, or has returned.
    var isReady: Bool { state.withLock { $0.isReady } }

    /// Why it ended, if it threw an error although nobody had cancelled it.
    var failure: CommandFailure? {
        state.withLock { $0.error }.map { error in
            CommandFailure(
                .failed, code: "ownCodeFailed",
                """
                The program's own code threw an error, so the worker has ended. Catch the error there if the worker is \
                to go on without it: \(error)
                """)
        }
    }

    /// Begins, and waits until the code is ready or cancelled. Called once.
    ///
    /// - Parameters:
    ///   - node: The node.
    ///   - whenFailed: Called if the code throws an error.
    /// - Throws: Why it ended, if it has failed already.
    func begin(
        on node: Node, whenFailed: @escaping @Sendable () -> Void
    ) async throws(CommandFailure) {
        let task = Task { [self] in
            do {
                try await body(node) { [self] in becomeReady() }
                becomeReady()
            } catch {
                state.withLock { if !$0.isCancelled { $0.error = error } }
                whenFailed()
            }
        }
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
        for await _ in readiness {}
        if let failure { throw failure }
    }

    private func becomeReady() {
        state.withLock { $0.isReady = true }
        readied.finish()
    }

    /// Cancels the code's task.
    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
        readied.finish()
    }

    /// Waits until the code has ended, but not for ever.
    ///
    /// - Returns: A note for people if it has not ended in time.
    func end() async -> String? {
        guard let task = state.withLock({ $0.task }) else { return nil }
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        Task {
            await task.value
            end.yield(true)
        }
        Task {
            await Pause.wait(for: Self.endPatience)
            end.yield(false)
        }
        var first = ends.makeAsyncIterator()
        if await first.next() == true { return nil }
        return """
            The program's own code had not ended \(Self.endPatience) after its task was cancelled, and was left. Return \
            from it when Task.isCancelled.
            """
    }
}
