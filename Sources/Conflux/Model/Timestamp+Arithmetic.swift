import ConfluxVocabulary

// Not beside the type: to import a single type brings no operators.
/// Timestamps and durations are added and subtracted: `context.timestamp - placed > .seconds(30)`.
///
/// Nothing here traps, since a reducer that traps ends every replica. A sum that is no timestamp, before 1677 or after
/// 2262, becomes the nearest one.
extension Timestamp {
    /// The timestamp after a duration, or, if it is negative, before it. What is left of a nanosecond is dropped.
    public static func + (timestamp: Timestamp, duration: Duration) -> Timestamp {
        let last = Timestamp(duration < .zero ? .min : .max)
        let room = last - timestamp
        if duration < .zero ? duration <= room : duration >= room { return last }
        // The sum is a timestamp. So it does not matter what overflows on the way to it.
        let (seconds, attoseconds) = duration.components
        return Timestamp(
            timestamp.rawValue &+ seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000)
    }

    /// The timestamp before a duration, or, if it is negative, after it.
    public static func - (timestamp: Timestamp, duration: Duration) -> Timestamp {
        timestamp + (.zero - duration)
    }

    /// The time from the right timestamp to the left one; negative if the left one is earlier. It is exact.
    public static func - (later: Timestamp, earlier: Timestamp) -> Duration {
        .nanoseconds(later.rawValue) - .nanoseconds(earlier.rawValue)
    }
}
