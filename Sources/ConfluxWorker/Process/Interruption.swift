import Conflux
import ConfluxNode
import ConfluxThreads
import Dispatch
import Foundation
import Synchronization

/// A request that this process ends: SIGINT, SIGTERM, or an output that nobody reads.
///
/// The first request notifies the listeners, and the command ends cleanly. A second signal ends the
/// process at once. So does the first one after ``endingMax``, whatever keeps the process from ending: an output that
/// nobody reads, a disk that hangs, a server that can't be reached.
package final class Interruption: Sendable {
    /// How long a process may take to end after a signal.
    package static let endingMax = Duration.milliseconds(4_500)
    /// How long after a signal the output waits for a reader that does not read. The rest is lost.
    package static let outputMax = Duration.milliseconds(1_500)
    /// When the first signal came, in nanoseconds of the uptime clock; 0 before that.
    private static let signalledAt = Atomic<UInt64>(0)

    /// How long ago the first signal came; nil before that.
    package static var timeSinceSignal: Duration? {
        let moment = signalledAt.load(ordering: .relaxed)
        guard moment > 0 else { return nil }
        return .nanoseconds(DispatchTime.now().uptimeNanoseconds - moment)
    }

    private struct Content {
        var reason: ExitCode?
        var listeners: [@Sendable () -> Void] = []
    }

    private let state = Mutex(Content())

    /// Handles the signals of this process from now on.
    package static func watchSignals() -> Interruption {
        // The code that writes to a pipe decides what to do if it is closed.
        signal(SIGPIPE, SIG_IGN)
        startTimers()
        let interruption = Interruption()
        Signals.handle(SIGINT) { interruption.signalled(.interrupted) }
        Signals.handle(SIGTERM) { interruption.signalled(.terminated) }
        return interruption
    }

    /// Lets a first timer fire. The system's library of queues opens a descriptor for that. If none were left later, its
    /// timers would never fire, and whoever waits with a limit would wait for ever.
    private static func startTimers() {
        let hasFired = Latch()
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { hasFired.open() }
        hasFired.wait(for: .seconds(1))
    }

    /// Makes an interruption that only ``fire(_:)`` fires.
    package init() {}

    private func signalled(_ reason: ExitCode) {
        let now = DispatchTime.now()
        let isFirst = Self.signalledAt.compareExchange(
            expected: 0, desired: now.uptimeNanoseconds, ordering: .relaxed
        ).exchanged
        // The second signal: the sender does not want to wait any longer.
        guard isFirst else { _exit(reason.rawValue) }
        // A queue of its own has a thread even if those of all others wait for something.
        DispatchQueue(label: "conflux-end").asyncAfter(
            deadline: .now() + Self.endingMax.dispatchInterval
        ) { _exit(reason.rawValue) }
        fire(reason)
    }

    /// Why the process should end; nil if it should not.
    package var reason: ExitCode? { state.withLock { $0.reason } }

    /// Requests that the process end.
    ///
    /// - Returns: Whether this was the first request.
    @discardableResult
    package func fire(_ reason: ExitCode) -> Bool {
        let listeners = state.withLock { state -> [@Sendable () -> Void]? in
            guard state.reason == nil else { return nil }
            state.reason = reason
            return exchange(&state.listeners, with: [])
        }
        guard let listeners else { return false }
        for listener in listeners { listener() }
        return true
    }

    /// Calls a function when the process should end; at once if that was requested already.
    package func whenFired(_ listener: @escaping @Sendable () -> Void) {
        let isFired = state.withLock { state in
            if state.reason == nil { state.listeners.append(listener) }
            return state.reason != nil
        }
        if isFired { listener() }
    }

    /// Runs an operation, and cancels it when the process should end.
    ///
    /// - Throws: What the operation throws.
    package func cancelling<Value: Sendable>(
        _ body: @escaping @Sendable () async throws(CommandFailure) -> Value
    ) async throws(CommandFailure) -> Value {
        let task = Task { () async -> Result<Value, CommandFailure> in
            await Result { () async throws(CommandFailure) in try await body() }
        }
        whenFired { task.cancel() }
        return try await task.value.get()
    }
}

extension Result {
    /// Keeps what an operation returns or throws.
    package init(
        isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws(Failure) -> Success
    ) async {
        do throws(Failure) { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

/// Waits for some time. Cancellation of the waiting task ends the wait early.
package final class Pause: Sendable {
    private let state = Mutex<(isOver: Bool, waiter: CheckedContinuation<Void, Never>?)>(
        (false, nil))

    private init() {}

    /// Waits.
    ///
    /// - Parameter duration: How long to wait.
    package static func wait(for duration: Duration) async {
        let pause = Pause()
        DispatchQueue.global().asyncAfter(deadline: .now() + duration.dispatchInterval) {
            [weak pause] in pause?.end()
        }
        await withTaskCancellationHandler {
            await pause.wait()
        } onCancel: {
            pause.end()
        }
    }

    private func end() {
        let waiter = state.withLock { state in
            state.isOver = true
            return exchange(&state.waiter, with: nil)
        }
        waiter?.resume()
    }

    private func wait() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { state.waiter = continuation }
                return state.isOver
            }
            if isOver { continuation.resume() }
        }
    }
}
