import Conflux
import Synchronization

/// Where the stores of a simulated node run that have an executor of their own: later, one function
/// after the other, when the cluster says so.
// Sendable: everything is guarded by the mutex.
final class SimulatedExecutor: Sendable {
    private struct Waiting {
        /// Oldest first.
        var functions: [@Sendable () -> Void] = []
        var runsAtOnce = false
    }

    private let waiting = Mutex(Waiting())

    /// What stores are made with.
    var executor: Executor {
        Executor { [self] function in
            let isLate = waiting.withLock { waiting in
                if !waiting.runsAtOnce { waiting.functions.append(function) }
                return !waiting.runsAtOnce
            }
            if !isLate { function() }
        }
    }

    /// Whether no store has anything to do.
    var isIdle: Bool { waiting.withLock { $0.functions.isEmpty } }

    /// Runs what has waited longest.
    func runFirst() {
        let function = waiting.withLock { waiting in
            waiting.functions.isEmpty ? nil : waiting.functions.removeFirst()
        }
        function?()
    }

    /// Looks at stores while they have nothing to do.
    func atOnce<Result>(_ body: () -> Result) -> Result {
        precondition(isIdle, "what waits comes first")
        waiting.withLock { $0.runsAtOnce = true }
        defer { waiting.withLock { $0.runsAtOnce = false } }
        return body()
    }

    /// The process is gone, with all that waits.
    func end() {
        waiting.withLock { $0.functions = [] }
    }
}
