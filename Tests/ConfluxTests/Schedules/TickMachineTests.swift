import ConfluxVocabulary
import Testing

@testable import Conflux

/// When a process ticks.
struct TickMachineTests {
    /// A machine, a monotonic clock, and a clock on the wall.
    private struct Bench {
        var machine = TickMachine(spread: .milliseconds(5))
        var now = Duration.seconds(7)
        var wall = Timestamp(seconds: 1_000)

        var moment: Moment { Moment(monotonic: now, wall: wall) }

        mutating func pass(_ time: Duration) {
            now += time
            wall = wall + time
        }

        mutating func saw(due: Int64?, latest: Int64?) -> TickMachine.Effect? {
            machine.saw(
                due: due.map { Timestamp(seconds: $0) },
                latest: latest.map { Timestamp(seconds: $0) },
                at: moment)
        }

        mutating func host(due: Int64?, latest: Int64? = nil) -> TickMachine.Effect? {
            machine.hosted(
                isOver: false, due: due.map { Timestamp(seconds: $0) },
                latest: latest.map { Timestamp(seconds: $0) }, at: moment)
        }
    }

    @Test func `by the store's clock, it ticks when something is due`() {
        var bench = Bench()
        #expect(bench.saw(due: nil, latest: 1_000) == nil)
        #expect(bench.saw(due: 1_030, latest: 1_000) == .wake(at: .seconds(37)))
        // Nothing earlier, nothing new.
        #expect(bench.saw(due: 1_031, latest: 1_000) == nil)
        #expect(bench.saw(due: 1_010, latest: 1_000) == .wake(at: .seconds(17)))
        bench.pass(.seconds(10))
        #expect(bench.machine.woke(at: bench.moment) == .tick)
        #expect(bench.saw(due: nil, latest: 1_010) == nil)
        #expect(bench.machine.ended(.done(Timestamp(seconds: 1_010)), at: bench.moment) == nil)
    }

    @Test func `it looks again if it was early, and if the wait is long`() {
        var bench = Bench()
        #expect(bench.saw(due: 1_090, latest: nil) == .wake(at: .seconds(67)))
        bench.pass(.seconds(60))
        #expect(bench.machine.woke(at: bench.moment) == .wake(at: .seconds(97)))
        // The clock on the wall was set back.
        bench.pass(.seconds(30))
        bench.wall = bench.wall - .seconds(1)
        #expect(bench.machine.woke(at: bench.moment) == .wake(at: .seconds(98)))
    }

    @Test func `in a log, the greatest known time counts, and one host ticks before the other`() {
        var bench = Bench()
        // An old entry comes first: the log's time is at least this.
        #expect(bench.host(due: nil, latest: 300) == nil)
        #expect(bench.saw(due: 560, latest: 500) == .wake(at: .seconds(67)))
        #expect(bench.saw(due: 560, latest: 540) == .wake(at: .seconds(27) + .milliseconds(6)))
        #expect(bench.saw(due: 560, latest: 530) == nil)
        #expect(bench.machine.time(at: bench.moment) == Timestamp(seconds: 540))
        bench.pass(.seconds(20) + .milliseconds(6))
        #expect(bench.machine.woke(at: bench.moment) == .tick)
    }

    @Test func `a store that was opened with items is told the time once`() {
        var bench = Bench()
        #expect(bench.host(due: 560, latest: 500) == .wake(at: .seconds(7) + .milliseconds(5)))
        bench.pass(.milliseconds(5))
        #expect(bench.machine.woke(at: bench.moment) == .tick)
        // The entry says what time it is, though it is too early.
        #expect(bench.saw(due: 560, latest: 559) == nil)
        let end = bench.machine.ended(.done(Timestamp(seconds: 559)), at: bench.moment)
        #expect(end == .wake(at: .seconds(8) + .milliseconds(11)))
    }

    @Test func `a tick that was too early corrects the time`() {
        var bench = Bench()
        _ = bench.host(due: nil)
        _ = bench.saw(due: 510, latest: 500)
        // The clock of the sequencer is slower.
        bench.pass(.seconds(11))
        #expect(bench.machine.woke(at: bench.moment) == .tick)
        let end = bench.machine.ended(.done(Timestamp(seconds: 509)), at: bench.moment)
        #expect(end == .wake(at: .seconds(19) + .milliseconds(6)))
    }

    @Test func `failures are followed by growing pauses, and a refusal by a long one`() {
        var bench = Bench()
        _ = bench.host(due: nil)
        _ = bench.saw(due: 500, latest: 500)
        var pauses: [Duration] = []
        for _ in 0..<9 {
            bench.pass(.seconds(60))
            #expect(bench.machine.woke(at: bench.moment) == .tick)
            guard case .wake(let time) = bench.machine.ended(.failed, at: bench.moment) else {
                Issue.record("it does not try again")
                break
            }
            pauses.append(time - bench.now)
        }
        #expect(
            pauses
                == [20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000].map { .milliseconds($0) })
        bench.pass(.seconds(60))
        #expect(bench.machine.woke(at: bench.moment) == .tick)
        let end = bench.machine.ended(.refused, at: bench.moment)
        #expect(end == .wake(at: bench.now + .seconds(60)))
    }

    @Test func `what is due again at once gets slower`() {
        var bench = Bench()
        _ = bench.host(due: nil)
        _ = bench.saw(due: 500, latest: 500)
        var last = Duration.zero
        for _ in 0..<8 {
            bench.pass(.seconds(60))
            #expect(bench.machine.woke(at: bench.moment) == .tick)
            let end = bench.machine.ended(.done(Timestamp(seconds: 500)), at: bench.moment)
            guard case .wake(let time) = end else {
                Issue.record("it ends")
                break
            }
            #expect(time - bench.now >= last)
            last = time - bench.now
        }
        #expect(last == TickMachine.pauseMax)
    }

    @Test func `nothing ticks while a tick is under way, or once the store has ended`() {
        var bench = Bench()
        _ = bench.host(due: nil)
        _ = bench.saw(due: 500, latest: 500)
        bench.pass(.seconds(1))
        #expect(bench.machine.woke(at: bench.moment) == .tick)
        #expect(bench.saw(due: 499, latest: 501) == nil)
        #expect(bench.machine.woke(at: bench.moment) == nil)
        #expect(bench.machine.ended(.over, at: bench.moment) == nil)
        #expect(bench.saw(due: 499, latest: 502) == nil)
        #expect(bench.host(due: 499) != nil)
        let over = bench.machine.hosted(isOver: true, due: nil, latest: nil, at: bench.moment)
        #expect(over == nil && bench.saw(due: 499, latest: 503) == nil)
    }
}
