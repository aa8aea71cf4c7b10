import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// Gives the commits of a reader to a run, on the thread that applies, until the run is done or ended early.
final class PastSink: Sendable {
    // Sendable: guarded by the mutex. Whoever waits uses the run again only after the end.
    private enum Phase: @unchecked Sendable {
        case idle
        case running(PastRun, through: SequenceNumber)
        case over(PastError?)
    }

    private let phase = Mutex(Phase.idle)
    private let outcome = OneShot<PastError?>()

    /// Why it failed, or was ended early; nil if it was not.
    var error: PastError? {
        phase.withLock { if case .over(let error) = $0 { error } else { nil } }
    }

    /// Begins with a run, unless it was ended.
    ///
    /// - Parameters:
    ///   - run: The run, which belongs to this sink until ``ended()`` returns.
    ///   - last: The last number that it needs.
    func begin(_ run: PastRun, through last: SequenceNumber) {
        nonisolated(unsafe) let run = run  // handed over under the mutex
        phase.withLock { phase in
            if case .idle = phase { phase = .running(run, through: last) }
        }
    }

    /// Takes a commit. Whoever ends the sink meanwhile waits until it is applied.
    func take(_ commit: Commit) {
        let end: PastError?? = phase.withLock { phase in
            guard case .running(let run, _) = phase else { return nil }
            do throws(PastError) {
                try run.take(commit)
                guard run.isDone else { return nil }
                phase = .over(nil)
                return .some(nil)
            } catch {
                phase = .over(error)
                return error
            }
        }
        if let end { outcome.send(end) }
    }

    /// Ends it, unless it is over.
    func end(_ error: PastError) {
        let isFirst = phase.withLock { phase in
            if case .over = phase { return false }
            phase = .over(error)
            return true
        }
        if isFirst { outcome.send(error) }
    }

    /// Ends it if an event of the reader says that no further commit comes.
    func note(_ event: NodeEvent) {
        switch event {
        case .closed(let message): end(PastError(.unreachable, message))
        case .historyLost(let from, _): end(.discarded(from))
        case .logDamaged(let from, _, let message):
            let isNeeded = phase.withLock { phase in
                if case .running(_, let last) = phase { from <= last } else { false }
            }
            if isNeeded { end(.discarded(from, message)) }
        default: break
        }
    }

    /// Waits for the end.
    ///
    /// - Returns: Why it failed; nil if the run is done.
    func ended() async -> PastError? { await outcome.receive(onCancel: .cancelled) }
}
