import Conflux
import ConfluxProtocol

extension NodeCore {
    /// Sets a timer that dispatches an encoded action.
    package func set(
        _ timing: Timing, _ target: BatchTarget, _ payload: [UInt8]
    ) -> DispatchHandle {
        do throws(DispatchError) {
            return outbox.submit(.set(try TimerOrder(timing, [(target, payload)])), mayWait: true)
        } catch {
            return DispatchHandle(.failed(error))
        }
    }

    /// Ends a timer. The outcome fails with the reason `noSuchTimer` if there is none.
    package func cancel(_ key: TimerKey) -> DispatchHandle {
        outbox.submit(.cancel(key), mayWait: true)
    }
}
