import ConfluxVocabulary

/// Decides when a process dispatches ``ScheduledModel/timePassed`` to one of its stores: a *tick*.
///
/// Firing follows from the log, so a tick too many does no harm, and a tick too few makes it late. All that matters here
/// is that there is a tick soon after something is due, and that there are few of them.
///
/// *What time it is.* Without a log, the store's clock says it. In a log, only timestamps of entries do, and an entry that
/// was fetched may be old. So the machine keeps the difference of the log's time and this process's monotonic clock, of
/// the latest entry that it saw: the greatest one, since an entry comes here after its timestamp. A tick of its own
/// corrects it. As long as nothing is known, as after the store was opened, one tick finds out.
///
/// *Several hosts.* Each waits for a while of its own (`spread`) after something is due. So usually the one with the
/// shortest while ticks, and the others see the entry first. If they don't, the condition of their tick fails.
///
/// *Failures.* After each, it waits twice as long, up to `pauseMax`. A refused tick has made an entry for nothing, so it
/// then waits for `refusalPause`.
struct TickMachine {
    /// What gives the time, and takes the ticks.
    enum Source { case clock, log, nothing }
    /// How a tick ended.
    enum End {
        /// It is in the log, or was committed, at this time.
        case done(Timestamp)
        case refused
        case failed
        /// Nobody takes ticks any more.
        case over
    }
    /// What to do.
    enum Effect: Equatable {
        /// Call ``woke(at:)`` at this time of the monotonic clock, and not at the one that was told before.
        case wake(at: Duration)
        case tick
    }

    /// The time from the end of one tick to the next, at least.
    static var pauseMin: Duration { .milliseconds(10) }
    /// The longest pause after a failure.
    static var pauseMax: Duration { .seconds(1) }
    /// The pause after a refused tick.
    static var refusalPause: Duration { .seconds(60) }
    /// The longest time without a look at the clocks. *Use*: a wall clock may be set.
    static var lookMax: Duration { .seconds(60) }
    /// After something is due, by an estimate that may be a little early.
    static var margin: Duration { .milliseconds(1) }

    /// How long this process lets others go first.
    let spread: Duration
    private(set) var source = Source.clock
    /// When the first item is due; nil if there is none.
    private(set) var due: Timestamp?
    /// The timestamp of the last entry that was seen. *Use*: each entry counts once.
    private var latest: Timestamp?
    /// The log's time, less the monotonic clock; nil if it is not known.
    private var offset: Duration?
    /// When the log began to order the store's actions, by the monotonic clock.
    private var begin = Duration.zero
    /// No tick before this time of the monotonic clock.
    private var rest = Duration.zero
    private var failures = 0
    /// When ``woke(at:)`` will be called; nil if it won't.
    private var wake: Duration?
    /// *Invariant*: one tick at a time is under way.
    private(set) var isTicking = false

    init(spread: Duration) { self.spread = spread }

    /// The log's time, as far as it is known.
    func time(at moment: Moment) -> Timestamp? {
        guard source == .log, let offset else { return nil }
        return Timestamp(0) + (moment.monotonic + offset)
    }

    /// The model is now like this.
    mutating func saw(due: Timestamp?, latest: Timestamp?, at moment: Moment) -> Effect? {
        self.due = due
        if let latest, latest != self.latest {
            self.latest = latest
            let offset = latest - Timestamp(0) - moment.monotonic
            self.offset = self.offset.map { max($0, offset) } ?? offset
        }
        if due == nil { failures = 0 }
        return next(at: moment)
    }

    /// The log orders the store's actions from now on; or nothing changes the store any more.
    ///
    /// - Parameters:
    ///   - isOver: Whether nothing does.
    ///   - due: When the first item is due.
    ///   - latest: The timestamp of the last entry. It may be old.
    ///   - moment: The present time.
    /// - Returns: What to do now; nil for nothing.
    mutating func hosted(
        isOver: Bool, due: Timestamp?, latest: Timestamp?, at moment: Moment
    ) -> Effect? {
        source = isOver ? .nothing : .log
        (self.due, self.latest, offset, failures) = (due, latest, nil, 0)
        // A tick that is under way was for another source.
        (isTicking, wake, begin) = (false, nil, moment.monotonic)
        return next(at: moment)
    }

    /// The time that was asked for has come.
    mutating func woke(at moment: Moment) -> Effect? {
        wake = nil
        guard let target = target(at: moment) else { return nil }
        guard target <= moment.monotonic else { return next(at: moment) }
        isTicking = true
        return .tick
    }

    /// A tick has ended.
    mutating func ended(_ end: End, at moment: Moment) -> Effect? {
        isTicking = false
        switch end {
        case .done(let time):
            if source == .log { offset = time - Timestamp(0) - moment.monotonic }
            // Something is due again at once. If that goes on, it gets slower.
            failures = due.map { $0 <= time } ?? false ? failures + 1 : 0
        case .failed, .refused: failures += 1
        case .over: source = .nothing
        }
        var pause = Self.pauseMin * (1 << min(failures, 7))
        pause = min(pause, Self.pauseMax)
        if case .refused = end { pause = Self.refusalPause }
        rest = moment.monotonic + pause
        return next(at: moment)
    }

    /// When to tick, by the monotonic clock.
    private func target(at moment: Moment) -> Duration? {
        guard let due, !isTicking else { return nil }
        let time: Duration
        switch source {
        case .nothing: return nil
        case .clock: time = moment.monotonic + (due - moment.wall)
        case .log:
            time = offset.map { due - Timestamp(0) - $0 + Self.margin } ?? begin
        }
        return max(source == .log ? time + spread : time, rest)
    }

    /// Asks to be called in time, unless that will happen anyway.
    private mutating func next(at moment: Moment) -> Effect? {
        guard let target = target(at: moment) else { return nil }
        let time = min(target, moment.monotonic + Self.lookMax)
        if let wake, wake <= time { return nil }
        wake = time
        return .wake(at: time)
    }
}
