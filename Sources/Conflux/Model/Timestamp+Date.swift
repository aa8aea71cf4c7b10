import ConfluxVocabulary
import Foundation

extension Timestamp {
    /// The seconds from 1970, where timestamps begin, to 2001, where dates begin.
    private static let referenceSeconds: Int64 = 978_307_200
    private static let nanosecondsPerSecond: Int64 = 1_000_000_000

    /// Makes a timestamp of a date, rounded to whole nanoseconds.
    ///
    /// A date without a timestamp, before 1677 or after 2262, becomes the nearest one.
    ///
    /// - Parameter date: The date.
    public init(_ date: Date) {
        let interval = date.timeIntervalSinceReferenceDate
        let whole = interval.rounded(.down)
        // Taken by itself: together with the seconds it has more digits than a floating-point
        // number.
        let rest = ((interval - whole) * Double(Self.nanosecondsPerSecond)).rounded()
        let latest = Int64.max / Self.nanosecondsPerSecond - Self.referenceSeconds
        guard whole < Double(latest) else {
            self.init(.max)
            return
        }
        guard whole > -Double(latest + 2 * Self.referenceSeconds) else {
            self.init(.min)
            return
        }
        let seconds = Int64(whole) + Self.referenceSeconds
        self.init(seconds * Self.nanosecondsPerSecond + Int64(rest))
    }

    /// The same point in time as a date, exact to about a tenth of a microsecond.
    public var date: Date {
        let (seconds, rest) = rawValue.quotientAndRemainder(
            dividingBy: Self.nanosecondsPerSecond)
        return Date(
            timeIntervalSinceReferenceDate: Double(seconds - Self.referenceSeconds)
                + Double(rest) / Double(Self.nanosecondsPerSecond))
    }
}
