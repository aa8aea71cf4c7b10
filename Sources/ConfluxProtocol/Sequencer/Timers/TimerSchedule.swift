import ConfluxVocabulary

/// When timers fire, by the clocks of this term.
///
/// What counts the time that passes goes by the monotonic clock, so that a jump of the wall clock changes nothing. What
/// waits for a time of day goes by the log's time, which follows the wall clock.
struct TimerSchedule: Sendable {
    private struct Place: Sendable, Comparable {
        /// A time of the monotonic clock, or of the log, in nanoseconds.
        var time: Int64
        var timer: SequenceNumber

        static func < (left: Place, right: Place) -> Bool {
            (left.time, left.timer) < (right.time, right.timer)
        }
    }

    /// How often the log's time is compared with the next time of day.
    private static let reviewInterval = Duration.seconds(1)
    /// The time between the tries of two timers that can't fire.
    private static let postponement = Duration.microseconds(200)
    private static let reviewIntervalMin = Duration.milliseconds(1)

    private var passing = TreeMap<Place, Bool>()
    private var calendar = TreeMap<Place, Bool>()
    private var isCalendarsTurn = false
    /// *Invariant*: each timer has one place, in one of the two.
    private var places: [SequenceNumber: (place: Place, isCalendar: Bool)] = [:]
    /// The timers whose place is not the time that was intended.
    private var postponed: Set<SequenceNumber> = []
    /// When the calendar is compared with the log's time.
    private var reviewAt = Duration.zero

    /// When to look for timers that are due; nil if there is none.
    var nextDeadline: Duration? {
        let first = passing.first.map { Duration.nanoseconds($0.key.time) }
        guard calendar.first != nil else { return first }
        return min(first ?? reviewAt, reviewAt)
    }

    /// A timer fires when so much time has passed. The span is negative if it was due earlier: what was due first fires
    /// first.
    mutating func set(_ timer: SequenceNumber, after span: Duration, at now: Duration) {
        insert(Place(time: (now + span).wholeNanoseconds, timer: timer), isCalendar: false)
    }

    /// A timer fires when the log's time has come to this.
    mutating func set(_ timer: SequenceNumber, at time: Timestamp, now: Duration) {
        insert(Place(time: time.rawValue, timer: timer), isCalendar: true)
        reviewAt = now
    }

    /// A timer that is due can't fire now, and is tried again later. The more there are, the later: all of them together
    /// are tried at a bounded rate.
    mutating func postpone(_ timer: SequenceNumber, by span: Duration, at now: Duration) {
        set(timer, after: max(span, Self.postponement * postponed.count), at: now)
        postponed.insert(timer)
    }

    /// A timer fires again after an interval, which counts from the time that was intended. Intervals that have passed
    /// are left out.
    ///
    /// - Returns: Whether it has a place: a time of day does not repeat by the time that passes, and of a timer that was
    ///   postponed, only the table knows the time that was intended.
    mutating func `repeat`(_ timer: SequenceNumber, every interval: Duration, at now: Duration)
        -> Bool
    {
        guard let (place, isCalendar) = places[timer], !isCalendar, !postponed.contains(timer)
        else { return false }
        let intended = Duration.nanoseconds(place.time)
        set(
            timer,
            after: intended - now + interval * (Int(max(.zero, now - intended) / interval) + 1),
            at: now)
        return true
    }

    /// Whether it is known when a timer fires.
    func has(_ timer: SequenceNumber) -> Bool { places[timer] != nil }

    /// A timer does not fire any more.
    mutating func remove(_ timer: SequenceNumber) {
        guard let (place, isCalendar) = places.removeValue(forKey: timer) else { return }
        postponed.remove(timer)
        if isCalendar {
            calendar.removeValue(forKey: place)
        } else {
            passing.removeValue(forKey: place)
        }
    }

    /// The next timer that is due. It keeps its place.
    mutating func due(at now: Duration, _ timestamp: Timestamp) -> SequenceNumber? {
        // They take turns, so that neither waits for as long as others are due.
        isCalendarsTurn.toggle()
        let isCalendarDue = calendar.first.map { $0.key.time <= timestamp.rawValue } ?? false
        if let first = passing.first?.key, first.time <= now.wholeNanoseconds,
            !isCalendarDue || !isCalendarsTurn
        {
            return first.timer
        }
        guard let first = calendar.first?.key else { return nil }
        if isCalendarDue { return first.timer }
        // The log's time may go slower than that of the monotonic clock, and is then looked at again.
        let left = timestamp.distance(to: Timestamp(first.time))
        reviewAt = now + min(max(left, Self.reviewIntervalMin), Self.reviewInterval)
        return nil
    }

    private mutating func insert(_ place: Place, isCalendar: Bool) {
        remove(place.timer)
        places[place.timer] = (place, isCalendar)
        if isCalendar { calendar[place] = true } else { passing[place] = true }
    }
}
