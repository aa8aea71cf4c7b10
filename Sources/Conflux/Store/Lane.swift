import ConfluxVocabulary
import Dispatch

/// What a store's lane works on, one after the other.
// Sendable: a job is handed from one thread to another and used by one at a time; that actions
// may be committed on another thread is the contract of `State.Action`.
enum LaneJob<S: State>: @unchecked Sendable {
    case action(S.Action)
    case tracked(S.Action, Tally, order: Int)
    case run(
        [OrderedAction<S>], through: SequenceNumber, completion: @Sendable (RunReport) -> Void)
    case look(@Sendable (_ state: S?, _ position: SequenceNumber) -> Void)
}

/// The waiting line of one store, and who serves it. Guarded by the mutex that it stands in.
///
/// At most one thread serves: whoever set `isBusy`, until it finds the line empty. On the
/// immediate executor that is the thread which sent first. On any other it is the executor, which
/// is handed one function at a time:
///
///     idle ──send──▶ busy ──line empty──▶ idle
///                     │ ▲
///          hand over  ▼ │  the run returned, and there is more
///                   executor
///
/// A run that ends while the thread that handed it over is still inside `execute` leaves the next
/// hand-over to that thread, so that an executor which runs functions at once isn't nested ever
/// deeper.
// Sendable: `LaneJob` says why for the jobs, and everything else is Sendable by itself.
struct Lane<S: State>: @unchecked Sendable {
    /// What the thread that put a job into the line has to do next.
    enum Duty {
        /// Nothing: someone serves the line.
        case none
        /// Serve the line.
        case serve
        /// Hand the line to the executor.
        case handOver
    }

    var isBusy = false
    var isClosed = false
    var waiting: [LaneJob<S>] = []
    var route: (any ActionRoute<S>)?
    /// Use: threads that wait, having found the line longer than its bound.
    private var crowded: [DispatchSemaphore] = []
    /// Whether a thread is inside the executor's `execute`.
    private var isHandingOver = false
    /// Whether that thread has to hand over once more.
    private var handsOverAgain = false
    /// Use: told once that the store was released. Invariant: empty from then on.
    var closeHooks: [Int: @Sendable () -> Void] = [:]
    var closeHookCount = 0

    /// Sees to it that the line is served, if it isn't.
    mutating func claim(isImmediate: Bool) -> Duty {
        if isBusy || waiting.isEmpty { return .none }
        isBusy = true
        if isImmediate { return .serve }
        if isHandingOver {
            handsOverAgain = true
            return .none
        }
        isHandingOver = true
        return .handOver
    }

    /// After the executor's `execute` returned: whether to call it again.
    mutating func handOverReturned() -> Bool {
        isHandingOver = handsOverAgain
        handsOverAgain = false
        return isHandingOver
    }

    /// After a run returned: whether there is more, and this thread has to hand it over.
    mutating func runReturned() -> Bool {
        isBusy = false
        return claim(isImmediate: false) == .handOver
    }

    /// A place to wait at, if the line is longer than its bound.
    mutating func waitingPlace(above bound: Int) -> DispatchSemaphore? {
        guard waiting.count > bound else { return nil }
        let place = DispatchSemaphore(value: 0)
        crowded.append(place)
        return place
    }

    /// Takes the whole line, leaving the emptied storage of the last turn in its place.
    ///
    /// - Returns: The threads that wait for room, to be woken outside the lock.
    mutating func take(into jobs: inout [LaneJob<S>]) -> [DispatchSemaphore] {
        swap(&waiting, &jobs)
        guard !crowded.isEmpty else { return [] }
        defer { crowded = [] }
        return crowded
    }
}
