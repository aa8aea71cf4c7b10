import Conflux
import Synchronization

extension NodeCore {
    /// Lets some time pass.
    static func pause(for time: Duration) async throws(NodeError) {
        let isOver = await OneShot<Bool>().receive(
            onCancel: false, timeout: time, onTimeout: true)
        if !isOver { throw .cancelled }
    }
}

/// Passes one value to one waiter. The waiter may give up, by cancellation or after a timeout. Only the
/// first value counts.
final class OneShot<Value: Sendable>: Sendable {
    private enum Content {
        case empty
        case waiting(CheckedContinuation<Value, Never>)
        case full(Value)
        case done
    }

    private let state = Mutex(Content.empty)

    /// Gives the value.
    func send(_ value: Value) {
        let waiter = state.withLock { state -> CheckedContinuation<Value, Never>? in
            switch state {
            case .empty:
                state = .full(value)
                return nil
            case .waiting(let waiter):
                state = .done
                return waiter
            case .full, .done: return nil
            }
        }
        waiter?.resume(returning: value)
    }

    /// Waits for the value; called once.
    ///
    /// - Parameters:
    ///   - onCancel: The value if the waiting task is cancelled.
    ///   - timeout: The time after which `onTimeout` is the value.
    ///   - onTimeout: The value after the timeout.
    /// - Returns: The first value that was given.
    func receive(
        onCancel: Value, timeout: Duration? = nil, onTimeout: Value? = nil
    ) async -> Value {
        let deadline = onTimeout.flatMap { value in
            timeout?.whenOver { [weak self] in self?.send(value) }
        }
        defer { deadline?.forget() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let value = state.withLock { state -> Value? in
                    switch state {
                    case .full(let value):
                        state = .done
                        return value
                    case .empty:
                        state = .waiting(continuation)
                        return nil
                    case .waiting, .done: preconditionFailure("awaited twice")
                    }
                }
                if let value { continuation.resume(returning: value) }
            }
        } onCancel: {
            send(onCancel)
        }
    }
}
