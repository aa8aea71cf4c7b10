import Conflux
import Testing

/// The arithmetic of timestamps.
struct TimestampTests {
    @Test func `timestamps and durations are added and subtracted`() {
        let start = Timestamp(1_000_000_000)
        #expect(start + .seconds(30) == Timestamp(31_000_000_000))
        #expect(start - .milliseconds(1_500) == Timestamp(-500_000_000))
        #expect(start + .seconds(30) - start == .seconds(30))
        #expect(start - (start + .nanoseconds(7)) == .nanoseconds(-7))
        #expect(start + .seconds(1) > start)
    }

    @Test func `parts of a nanosecond are dropped`() {
        let part = Duration(secondsComponent: 0, attosecondsComponent: 1_999_999_999)
        #expect(Timestamp(5) + part == Timestamp(6))
        #expect(Timestamp(5) - part == Timestamp(4))
    }

    @Test func `a sum that is no timestamp becomes the nearest one`() {
        let (first, last) = (Timestamp(.min), Timestamp(.max))
        #expect(last + .nanoseconds(1) == last && first - .nanoseconds(1) == first)
        #expect(first + .nanoseconds(Int64.max) + .nanoseconds(Int64.max) == Timestamp(.max - 1))
        #expect(first + (.nanoseconds(Int64.max) + .nanoseconds(5)) == Timestamp(4))
        for duration in [Duration.seconds(10_000_000_000), .seconds(Int64.max)] {
            #expect(Timestamp(0) + duration == last && Timestamp(0) - duration == first)
        }
        #expect(last - first == .nanoseconds(Int64.max) - .nanoseconds(Int64.min))
    }
}
