import ConfluxVocabulary
import Dispatch
import Synchronization

/// Sees to it that a store gets an entry when something in its model's schedule is due.
///
/// It looks at the schedule after each commit, in the store's lane, and carries out what the ``TickMachine`` decides.
/// Ticks are dispatched on a thread of the system, which never waits for room. Safe on any thread.
package final class Timekeeper: Sendable {
    /// Dispatches a tick; nil if the store is gone, or none can be dispatched now.
    typealias Ticking = @Sendable (_ source: TickMachine.Source) -> DispatchHandle?

    private struct Content {
        var machine: TickMachine
        /// Made when the first item is set.
        var timer: (any DispatchSourceTimer)?
        /// Whether a test gives the time. Then the clock stands still.
        var isGiven = false
        var report: (@Sendable (DispatchError) -> Void)?
        /// The last failure that was reported.
        var reported: DispatchError.Code?
    }

    // The timer is used only under the mutex.
    private struct Guarded: @unchecked Sendable { var content: Content }

    private let state: Mutex<Guarded>
    /// Whether the schedule had an item when it was last seen.
    private let hasItems = Atomic(false)
    private let tick: Ticking

    /// How long a tick may wait to be ordered. Then it is withdrawn, and tried again later. *Use*: one that waits, such as
    /// for a lock, would hold up what this process dispatches to other stores.
    private static var patience: Duration { .milliseconds(250) }
    /// The longest time that a host lets others tick first.
    private static var spreadMax: Int64 { 20_000_000 }

    init(tick: @escaping Ticking) {
        self.tick = tick
        let spread = Duration.nanoseconds(Int64.random(in: 0...Self.spreadMax))
        state = Mutex(Guarded(content: Content(machine: TickMachine(spread: spread))))
    }

    deinit {
        state.withLock { $0.content.timer?.cancel() }
    }

    /// The log's present time, as far as it is known.
    var logTime: Timestamp? { state.withLock { $0.content.machine.time(at: .present) } }

    /// Has a function called when ticks are not taken: once for each kind of failure in a row. A conflict is none, and nor
    /// is a tick that had to wait.
    package func reportFailures(to report: @escaping @Sendable (DispatchError) -> Void) {
        state.withLock { $0.content.report = report }
    }

    /// Looks at the schedule. Called in the lane.
    func look(due: Timestamp?, latest: Timestamp?) {
        // Most commits of a store whose schedule is empty end here.
        if due == nil, !hasItems.load(ordering: .relaxed) { return }
        hasItems.store(due != nil, ordering: .relaxed)
        handle { $0.saw(due: due, latest: latest, at: $1) }
    }

    /// A log orders the store's actions from now on, or nothing changes it any more. Called in the lane.
    func hosted(isOver: Bool, due: Timestamp?, latest: Timestamp?) {
        hasItems.store(due != nil, ordering: .relaxed)
        handle { $0.hosted(isOver: isOver, due: due, latest: latest, at: $1) }
    }

    /// A test gives the time. Ticks at once, on this thread, if something is due.
    package func set(to time: Timestamp) {
        let isDue = state.withLock { state in
            state.content.isGiven = true
            let machine = state.content.machine
            guard machine.source == .clock, let due = machine.due else { return false }
            return due <= time
        }
        if isDue { _ = tick(.clock) }
    }

    private func handle(_ input: (inout TickMachine, Moment) -> TickMachine.Effect?) {
        let source = state.withLock { state -> TickMachine.Source? in
            let moment = Moment.present
            let effect = input(&state.content.machine, moment)
            let machine = state.content.machine
            if state.content.isGiven, machine.source == .clock { return nil }
            switch effect {
            case nil: return nil
            case .tick: return machine.source
            case .wake(let time):
                wake(in: time - moment.monotonic, &state.content)
                return nil
            }
        }
        if let source { begin(source) }
    }

    private func wake(in time: Duration, _ content: inout Content) {
        let timer = content.timer ?? makeTimer()
        if content.timer == nil {
            content.timer = timer
            timer.activate()
        }
        let interval = max(.zero, time).dispatchInterval
        timer.schedule(deadline: .now() + interval, leeway: .milliseconds(1))
    }

    private func makeTimer() -> any DispatchSourceTimer {
        let timer = DispatchSource.makeTimerSource(queue: .global())
        timer.setEventHandler { [weak self] in self?.handle { $0.woke(at: $1) } }
        return timer
    }

    private func begin(_ source: TickMachine.Source) {
        guard let handle = tick(source) else { return end(.failed, of: source) }
        if source == .log, !handle.hasEnded {
            Self.patience.whenOver { if !handle.hasEnded { handle.requestWithdrawal() } }
        }
        handle.whenEnded { [weak self] outcome in
            switch outcome {
            case .committed(let receipt), .ordered(let receipt, _):
                self?.end(.done(receipt.timestamp), of: source)
            case .failed(let error): self?.end(with: error, of: source)
            }
        }
    }

    private func end(with error: DispatchError, of source: TickMachine.Source) {
        let report = state.withLock { state -> (@Sendable (DispatchError) -> Void)? in
            guard ![.conflict, .withdrawn, state.content.reported].contains(error.code) else {
                return nil
            }
            state.content.reported = error.code
            return state.content.report
        }
        report?(error)
        switch error.code {
        case .refused: end(.refused, of: source)
        case .storeClosed: end(.over, of: source)
        default: end(.failed, of: source)
        }
    }

    private func end(_ end: TickMachine.End, of source: TickMachine.Source) {
        if case .done = end { state.withLock { $0.content.reported = nil } }
        handle { machine, moment in
            // A log has taken over, or the store is hosted no longer.
            if machine.source != source { return nil }
            return machine.ended(end, at: moment)
        }
    }
}

/// The state of a scheduled model.
protocol ScheduleHolder: AnyObject {
    /// Makes what keeps the time of a store.
    ///
    /// - Parameter lane: The store's core.
    /// - Returns: What keeps it; nil if the state schedules nothing.
    func makeTimekeeper(of lane: Lane) -> Timekeeper?
    /// Tells it that a log orders the store's actions, or that nothing changes the store any more. Called in the lane.
    func tell(_ timekeeper: Timekeeper, isOver: Bool)
}

extension ValueState: ScheduleHolder where Value: ScheduledModel, Action == Value.Action {
    func makeTimekeeper(of lane: Lane) -> Timekeeper? {
        guard let core = lane as? StoreCore<ValueState> else { return nil }
        let timekeeper = Timekeeper { [weak core] source in core?.tick(Value.timePassed, source) }
        _ = add(Observation()) { state in
            let schedule = state.held.schedule
            timekeeper.look(due: schedule.nextDue, latest: schedule.latest)
        }
        let schedule = held.schedule
        timekeeper.look(due: schedule.nextDue, latest: schedule.latest)
        return timekeeper
    }

    func tell(_ timekeeper: Timekeeper, isOver: Bool) {
        let schedule = held.schedule
        timekeeper.hosted(isOver: isOver, due: schedule.nextDue, latest: schedule.latest)
    }
}

extension StoreCore where S: ReplicatedState {
    /// Dispatches a tick. In a log, only if the store has not changed.
    fileprivate func tick(_ action: S.Action, _ source: TickMachine.Source) -> DispatchHandle? {
        var handle: DispatchHandle?
        ThreadMark.current.neededByOthers {
            switch source {
            case .nothing: break
            case .log: handle = dispatch(action) { $0.conditional(on: version) }
            // While a node is opening the store, its clock no longer counts.
            case .clock: if !isRouted { handle = dispatchTracked(action) }
            }
        }
        return handle
    }
}
