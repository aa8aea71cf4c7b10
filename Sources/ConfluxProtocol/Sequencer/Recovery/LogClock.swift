import ConfluxVocabulary

/// What the sequencer noticed of its wall clock.
public enum ClockChange: Sendable, Hashable {
    /// The clock went forward by this much more than the time that passed. Timestamps follow it only if it stays
    /// there.
    case jumped(by: Duration)
    /// It has stayed there, so timestamps follow it.
    case followed(by: Duration)
    /// The clock is behind the log's last timestamp by this much: it was set back, or it was ahead before.
    case behind(by: Duration)
    /// The clock and the log's timestamps agree again.
    case agreed
}

/// Makes timestamps from the clocks. Rule 15 is implemented here: no timestamp is below an earlier one.
///
/// Since timestamps never go back, one reading of a clock that is wrong by a year would otherwise stay
/// the time of the log for a year. So
///
/// - a jump forward is not believed at once. Meanwhile timestamps advance with the monotonic clock.
///   Whoever set the clock by mistake has ``confirmationTime`` to set it back.
/// - if the clock is behind the timestamps, these do not stand still. They advance at seven eighths of
///   the monotonic clock's speed until the clock has caught up. So times that the log measures stay
///   about right, and the difference becomes smaller.
struct LogClock: Sendable, Equatable {
    /// A smaller difference is not reported, and is followed at once.
    static let jumpMin = Duration.seconds(5)
    /// For how long a jump forward must last before it is followed.
    static let confirmationTime = Duration.seconds(60)

    /// The last timestamp. *Invariant*: it never decreases.
    private(set) var last: Timestamp
    /// The last reading that was believed. *Use*: what the wall clock should show now.
    private var believed: Moment?
    /// A jump forward that is not followed yet: when it was noticed, and how far the clock went.
    private var jump: Jump?
    /// When the last timestamp was made.
    private var readAt: Duration?
    /// Whether it was reported that the clock is behind.
    private(set) var isBehind = false

    private struct Jump: Equatable {
        var since: Duration
        var by: Duration
    }

    /// Makes a clock whose timestamps are not below the log's last one.
    init(after last: Timestamp) {
        self.last = last
    }

    /// Makes a timestamp.
    ///
    /// - Parameters:
    ///   - now: What the clocks show.
    ///   - tell: Gets what is noteworthy.
    /// - Returns: The timestamp.
    mutating func read(_ now: Moment, tell: (ClockChange) -> Void) -> Timestamp {
        let wall = believe(now, tell: tell)
        let passed = max(.zero, now.monotonic - (readAt ?? now.monotonic))
        readAt = now.monotonic
        guard wall < last else {
            last = wall
            if isBehind {
                isBehind = false
                tell(.agreed)
            }
            return last
        }
        let lead = wall.distance(to: last)
        if lead >= Self.jumpMin, !isBehind {
            isBehind = true
            tell(.behind(by: lead))
        }
        last = last.advanced(by: passed * 7 / 8)
        return last
    }

    /// What the wall clock shows, unless it has jumped forward a short time ago.
    private mutating func believe(_ now: Moment, tell: (ClockChange) -> Void) -> Timestamp {
        let expected = believed.map { $0.wall.advanced(by: now.monotonic - $0.monotonic) }
        let change = expected?.distance(to: now.wall) ?? .zero
        guard let expected, change >= Self.jumpMin else {
            if jump != nil { tell(.agreed) }
            jump = nil
            believed = now
            return now.wall
        }
        if let jump, abs(change - jump.by) < Self.jumpMin {
            guard now.monotonic - jump.since >= Self.confirmationTime else { return expected }
            tell(.followed(by: change))
            self.jump = nil
            believed = now
            return now.wall
        }
        jump = Jump(since: now.monotonic, by: change)
        tell(.jumped(by: change))
        return expected
    }

    private func abs(_ span: Duration) -> Duration { max(span, .zero - span) }
}

extension Timestamp {
    /// The time from this one to a later one; negative if it is earlier.
    func distance(to other: Timestamp) -> Duration {
        let (span, overflow) = other.rawValue.subtractingReportingOverflow(rawValue)
        return .nanoseconds(overflow ? (other > self ? .max : .min + 1) : span)
    }

    /// The time after so long; the nearest timestamp if there is none.
    func advanced(by span: Duration) -> Timestamp {
        let (sum, overflow) = rawValue.addingReportingOverflow(span.wholeNanoseconds)
        return overflow ? Timestamp(span < .zero ? .min : .max) : Timestamp(sum)
    }
}
