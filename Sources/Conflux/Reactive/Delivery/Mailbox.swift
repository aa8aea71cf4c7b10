import Synchronization

/// The values on their way to one observer through an executor, in order.
///
/// An executor only chooses a place. So at most one function of a mailbox is with the executor at
/// any time: it delivers what is here, and when more came meanwhile, hands in the next.
final class Mailbox<Value>: @unchecked Sendable {
    // Sendable: `send` never changes; the observer chose where it is called.
    private enum Phase {
        /// Nothing is here.
        case idle
        /// A function is with the executor, or about to be.
        case scheduled
        /// That function is running.
        case delivering
        /// An executor ran the next function inside of the one that is running, or beside it while
        /// it was about to end: that one continues instead.
        case continuing
    }

    /// `state` guards it, and each value is with one thread at a time.
    private struct Content: @unchecked Sendable {
        var phase = Phase.idle
        var values: [Value] = []
        /// *Use*: called once, behind the values.
        var end: (@Sendable () -> Void)?
        var isEmpty: Bool { values.isEmpty && end == nil }
    }

    private let executor: Executor
    private let observation: Observation
    private let send: (Value) -> Void
    private let state = Mutex(Content())

    init(
        executor: Executor, observation: Observation, send: @escaping (Value) -> Void
    ) {
        self.executor = executor
        self.observation = observation
        self.send = send
    }

    func post(_ value: Value) {
        post { $0.values.append(value) }
    }

    /// Has a function called on the executor, behind the values.
    func post(end: @escaping @Sendable () -> Void) {
        post { $0.end = end }
    }

    private func post(_ add: (inout Content) -> Void) {
        let mustSchedule = state.withLock { state in
            add(&state)
            guard case .idle = state.phase else { return false }
            state.phase = .scheduled
            return true
        }
        if mustSchedule { schedule() }
    }

    private func schedule() {
        executor.run { [self] in deliver() }
    }

    private func deliver() {
        let goesOn = state.withLock { state in
            if case .delivering = state.phase {
                state.phase = .continuing
                return false
            }
            state.phase = .delivering
            return true
        }
        guard goesOn else { return }
        repeat {
            deliverWaiting()
        } while scheduleNext()
    }

    private func deliverWaiting() {
        let taken = state.withLock { state in
            let taken = state
            (state.values, state.end) = ([], nil)
            return taken
        }
        let mark = ThreadMark.current
        mark.pointee.lanes += 1
        for value in taken.values {
            guard observation.isActive else { break }
            send(value)
        }
        mark.pointee.lanes -= 1
        taken.end?()
    }

    /// Hands in the next function if values came meanwhile.
    ///
    /// - Returns: Whether the executor ran it already, so that the caller is to deliver instead: a
    ///   context that runs everything at once thus needs no deeper stack for more values.
    private func scheduleNext() -> Bool {
        let isDone = state.withLock { state in
            guard state.isEmpty else { return false }
            state.phase = .idle
            return true
        }
        if isDone { return false }
        schedule()
        return state.withLock { state in
            if case .continuing = state.phase {
                state.phase = .delivering
                return true
            }
            // The next function is still to come.
            state.phase = .scheduled
            return false
        }
    }
}
