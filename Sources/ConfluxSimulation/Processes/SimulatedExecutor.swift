import Conflux
import Synchronization

/// Runs the stores of a simulated node that have an executor of their own: later, one function at a time,
/// when the cluster says so.
// Sendable: everything is guarded by the mutex.
final class SimulatedExecutor: Sendable {
    private struct Waiting {
        /// Oldest first.
        var functions: [@Sendable () -> Void] = []
        var runsAtOnce = false
    }

    private let waiting = Mutex(Waiting())

    /// The executor for stores.
    var executor: Executor {
        Executor { [self] function in
            let isLate = waiting.withLock { waiting in
                if !waiting.runsAtOnce { waiting.functions.append(function) }
                return !waiting.runsAtOnce
            }
            if !isLate { function() }
        }
    }

    /// Whether no store has work to do.
    var isIdle: Bool { waiting.withLock { $0.functions.isEmpty } }

    /// Runs the function that has waited longest.
    func runFirst() {
        let function = waiting.withLock { waiting in
            waiting.functions.isEmpty ? nil : waiting.functions.removeFirst()
        }
        function?()
    }

    /// Inspects stores while they have no work to do.
    func atOnce<Result>(_ body: () -> Result) -> Result {
        precondition(isIdle, "what waits comes first")
        waiting.withLock { $0.runsAtOnce = true }
        defer { waiting.withLock { $0.runsAtOnce = false } }
        return body()
    }

    /// Ends the executor with its process; waiting functions are dropped.
    func end() {
        waiting.withLock { $0.functions = [] }
    }
}
