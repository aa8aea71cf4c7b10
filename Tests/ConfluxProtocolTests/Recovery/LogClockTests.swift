import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Timestamps while the wall clock jumps (rule 15).
struct LogClockTests {
    /// A wall clock that can be set, beside a monotonic clock.
    private struct Clocks {
        var log: LogClock
        var passed = Duration.zero
        /// What the wall clock shows beyond the time that passed.
        var offset = Duration.zero
        var changes: [ClockChange] = []
        private(set) var stamps: [Timestamp] = []

        init(lastInLog seconds: Int64 = 0) {
            log = LogClock(after: Timestamp(seconds * 1_000_000_000))
        }

        /// Lets time pass, in steps of a tenth of a second, and makes a timestamp in each.
        mutating func pass(_ span: Duration) {
            let end = passed + span
            repeat {
                let seconds = (passed + offset + .seconds(1_000)) / .nanoseconds(1)
                let now = Moment(monotonic: passed, wall: Timestamp(Int64(seconds)))
                stamps.append(log.read(now) { changes.append($0) })
                passed = min(end, passed + .milliseconds(100))
            } while passed < end
        }

        /// The last timestamp, in seconds after the wall clock's beginning.
        var shown: Double {
            Double((stamps.last?.rawValue ?? 0) - 1_000_000_000_000) / 1_000_000_000
        }
        var ascends: Bool { zip(stamps, stamps.dropFirst()).allSatisfy { $0 <= $1 } }
    }

    @Test func `a mistake that is undone within a minute leaves no trace in the log`() {
        var clocks = Clocks()
        clocks.pass(.seconds(10))
        clocks.offset = .seconds(86_400 * 365)
        clocks.pass(.seconds(50))
        #expect(clocks.changes == [.jumped(by: clocks.offset)])
        #expect(clocks.shown < 61)
        clocks.offset = .zero
        clocks.pass(.seconds(10))
        #expect(clocks.changes.last == .agreed && clocks.changes.count == 2)
        #expect((68...71).contains(clocks.shown) && clocks.ascends)
    }

    @Test func `a jump that lasts is followed after a minute`() {
        var clocks = Clocks()
        clocks.pass(.seconds(10))
        clocks.offset = .seconds(3_600)
        clocks.pass(.seconds(70))
        #expect(clocks.changes.count == 2)
        #expect(clocks.changes.last == .followed(by: .seconds(3_600)))
        #expect(clocks.shown > 3_670 && clocks.ascends)
    }

    @Test func `while the clock is behind, time goes on and the clock catches up`() {
        var clocks = Clocks()
        clocks.pass(.seconds(100))
        clocks.offset = .seconds(-70)
        clocks.pass(.seconds(80))
        #expect(clocks.changes == [.behind(by: .milliseconds(69_900))])
        // Seven eighths of the time that passed.
        #expect((168...171).contains(clocks.shown))
        clocks.pass(.seconds(600))
        #expect(clocks.changes.count == 2 && clocks.changes.last == .agreed)
        #expect((708...711).contains(clocks.shown) && clocks.ascends)
    }

    @Test func `a log that ends in the future is reported when its term begins`() {
        var clocks = Clocks(lastInLog: 1_000 + 86_400)
        clocks.pass(.seconds(8))
        #expect(clocks.changes == [.behind(by: .seconds(86_400))])
        #expect((86_406...86_408).contains(clocks.shown) && clocks.ascends)
    }

    @Test func `steps below five seconds and clocks that drift are followed in silence`() {
        var clocks = Clocks()
        for step in 0..<200 {
            clocks.offset += .milliseconds(step % 7 == 0 ? 4_900 : -700)
            clocks.pass(.seconds(1))
        }
        #expect(clocks.changes.isEmpty && clocks.ascends)
    }

    @Test func `a second jump restarts the minute`() {
        var clocks = Clocks()
        clocks.pass(.seconds(1))
        clocks.offset = .seconds(100)
        clocks.pass(.seconds(50))
        clocks.offset = .seconds(1_000)
        clocks.pass(.seconds(50))
        #expect(clocks.changes == [.jumped(by: .seconds(100)), .jumped(by: .seconds(1_000))])
        #expect(clocks.shown < 102 && clocks.ascends)
    }

    @Test func `a clock at the ends of what a timestamp holds stops nothing`() {
        var log = LogClock(after: Timestamp(.min))
        var stamps: [Timestamp] = []
        for (index, wall) in [Int64.max, .min, 0, .max, .min].enumerated() {
            stamps.append(
                log.read(Moment(monotonic: .seconds(100 * index), wall: Timestamp(wall))) { _ in })
        }
        #expect(zip(stamps, stamps.dropFirst()).allSatisfy { $0 <= $1 })
    }
}
