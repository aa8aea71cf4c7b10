import Dispatch
import Synchronization

/// One value for one waiter. Any further value is ignored.
final class OneTime<Value: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Value, Never>)
        case given(Value)
        case taken
    }

    private let state = Mutex(State.open)

    func give(_ value: Value) {
        let waiter = state.withLock { state -> CheckedContinuation<Value, Never>? in
            switch state {
            case .open: state = .given(value)
            case .awaited(let waiter):
                state = .taken
                return waiter
            case .given, .taken: break
            }
            return nil
        }
        waiter?.resume(returning: value)
    }

    /// Gives a value after a time, unless another one was given before.
    func after(_ limit: Duration, give value: Value) {
        let nanoseconds = Int(limit / .nanoseconds(1))
        DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(nanoseconds)) {
            [weak self] in self?.give(value)
        }
    }

    /// Waits for the value. Call it once.
    func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value = state.withLock { state -> Value? in
                if case .given(let value) = state {
                    state = .taken
                    return value
                }
                state = .awaited(continuation)
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}
