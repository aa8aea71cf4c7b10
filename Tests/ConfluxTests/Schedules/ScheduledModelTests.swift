import Conflux
import ConfluxVocabulary
import Testing

/// What fires with which entry.
struct ScheduledModelTests {
    @Test func `what is due fires before the entry, once, and not earlier`() {
        var log = HallLog()
        log.append(.hold(17, seconds: 30), at: 100)
        #expect(log.append(.hold(17, seconds: 30), at: 129) as? Hall.Taken == Hall.Taken(seat: 17))
        #expect(log.hall.held == [17])
        // It has expired just before, so the seat can be held again.
        #expect(log.append(.hold(17, seconds: 30), at: 130) == nil)
        #expect(log.hall.held == [17] && log.hall.notes == ["expired 17"])
        log.append(.timePassed, at: 159)
        #expect(log.hall.held == [17])
        for _ in 0..<3 { log.append(.timePassed, at: 1_000) }
        #expect(log.hall.held == [] && log.hall.notes == ["expired 17", "expired 17"])
        #expect(log.hall.schedule.isEmpty)
    }

    @Test func `what is cancelled never fires, also by what fires before it with the same entry`() {
        var log = HallLog()
        log.append(.hold(1, seconds: 10), at: 0)
        log.append(.pay(1), at: 5)
        log.append(.set(.cancel("b"), after: 1, every: nil, key: "a"), at: 10)
        log.append(.set(.note("b"), after: 1, every: nil, key: "b"), at: 10)
        log.append(.set(.note("c"), after: 1, every: nil, key: "c"), at: 10)
        log.append(.timePassed, at: 100)
        #expect(log.hall.held == [1] && log.hall.notes == ["c at 100"])
    }

    @Test func `what is set with a key replaces what has it`() {
        var log = HallLog()
        log.append(.set(.note("old"), after: 1, every: nil, key: "k"), at: 0)
        log.append(.set(.note("new"), after: 5, every: nil, key: "k"), at: 0)
        log.append(.timePassed, at: 4)
        #expect(log.hall.notes == [] && log.hall.schedule.items.count == 1)
        log.append(.timePassed, at: 5)
        #expect(log.hall.notes == ["new at 5"])
    }

    @Test func `what is due fires in the order of time, and then as it was set`() {
        var log = HallLog()
        for (text, delay) in [("third", 3), ("first", 1), ("fourth", 3), ("second", 2)] {
            log.append(.set(.note(text), after: delay, every: nil, key: text), at: 0)
        }
        log.append(.note("entry"), at: 9)
        #expect(
            log.hall.notes == ["first", "second", "third", "fourth", "entry"].map { "\($0) at 9" })
    }

    @Test func `what repeats fires once for the times that have passed, and doesn't drift`() {
        var log = HallLog()
        log.append(.set(.note("r"), after: 10, every: 10, key: "r"), at: 0)
        log.append(.timePassed, at: 13)
        #expect(log.hall.schedule.nextDue == Timestamp(seconds: 20))
        log.append(.timePassed, at: 20)
        log.append(.timePassed, at: 55)
        #expect(log.hall.notes == ["r at 13", "r at 20", "r at 55"])
        #expect(log.hall.schedule.nextDue == Timestamp(seconds: 60))
        log.append(.cancel("r"), at: 59)
        log.append(.timePassed, at: 99)
        #expect(log.hall.notes.count == 3)
    }

    @Test func `a refused entry changes nothing, and what was due fires with the next one`() {
        var log = HallLog()
        log.append(.hold(1, seconds: 10), at: 0)
        log.append(.set(.note("r"), after: 5, every: 5, key: "r"), at: 0)
        let before = log.hall
        #expect(log.append(.note(""), at: 20) != nil)
        #expect(log.hall == before)
        log.append(.timePassed, at: 21)
        #expect(log.hall.held == [] && log.hall.notes == ["r at 21", "expired 1"])
    }

    @Test func `a firing that is refused has no effect, and the others fire`() {
        var log = HallLog()
        log.append(.set(.note(""), after: 1, every: 10, key: "refused"), at: 0)
        log.append(.set(.note("fires"), after: 2, every: nil, key: "fires"), at: 0)
        #expect(log.append(.note("entry"), at: 3) == nil)
        #expect(log.hall.notes == ["fires at 3", "entry at 3"])
        #expect(log.hall.schedule.items.map(\.key) == ["refused"])
    }

    @Test func `what is set while items fire waits for the next entry`() {
        var log = HallLog()
        log.append(.set(.note("later"), after: 99, every: nil, key: "later"), at: 0)
        log.append(.insist, at: 0)
        log.append(.timePassed, at: 0)
        #expect(log.hall.notes == ["insists", "insists"])
        log.append(.timePassed, at: 9)
        #expect(log.hall.notes.count == 3)
    }

    @Test func `replicas fire alike, whether they have a snapshot or all entries`() throws {
        var all = HallLog()
        for second in 1...50 {
            let delay = second % 7
            all.append(
                .set(.note("n\(second)"), after: delay, every: nil, key: "k\(second % 9)"), at: 0)
        }
        all.append(.set(.roll, after: 1, every: 2, key: "roll"), at: 0)
        all.append(.set(.reset, after: 30, every: nil, key: "reset"), at: 0)
        var late = HallLog(
            hall: try CanonicalCoder().decode(
                Hall.self, from: try CanonicalCoder().encode(all.hall)), last: all.last)
        #expect(late.hall == all.hall)
        for second in 1...40 {
            for replica in [true, false] {
                if replica {
                    all.append(.timePassed, at: Int64(second))
                } else {
                    late.append(.timePassed, at: Int64(second))
                }
            }
            #expect(late.hall == all.hall)
        }
        #expect(try CanonicalCoder().encode(late.hall) == CanonicalCoder().encode(all.hall))
        // A reset fires once with an entry, though it replaces the schedule by a new one.
        #expect(all.hall.notes == ["reset"] && all.hall.schedule.items.count == 2)
    }

    @Test func `a firing has the entry's place, no origin, and random numbers of its own`() throws {
        var log = HallLog()
        for key in ["a", "b"] { log.append(.set(.roll, after: 1, every: nil, key: key), at: 0) }
        log.append(.roll, at: 1)
        #expect(Set(log.hall.notes).count == 3)

        var witness = Witness()
        let origin = Origin(incarnation: Incarnation(1), counter: 1)
        try witness._commit(
            .act,
            ActionContext(sequence: SequenceNumber(1), timestamp: Timestamp(0), origin: origin))
        let context = ActionContext(
            sequence: SequenceNumber(2), timestamp: Timestamp(9), origin: origin)
        try witness._commit(.act, context)
        #expect(witness.log == ["1 at 0 by \(origin)", "2 at 9 by nobody", "2 at 9 by \(origin)"])
    }

    /// Writes down the contexts of its actions.
    private struct Witness: ScheduledModel {
        static let name = "witness"
        static let timePassed = Action.act
        enum Action: Codable, Sendable { case act }
        var log: [String] = []
        var schedule = Schedule<Action>()

        mutating func apply(_ action: Action, _ context: ActionContext) {
            let origin = context.origin.map { "\($0)" } ?? "nobody"
            log.append("\(context.sequence) at \(context.timestamp) by \(origin)")
            if log.count == 1 { schedule.set(.act, at: Timestamp(5), key: "once") }
        }
    }

    @Test func `a model with reducers has a schedule, too`() throws {
        var clock = Clock()
        func context(_ seconds: Int64) -> ActionContext {
            ActionContext(timestamp: Timestamp(seconds: seconds))
        }
        try clock._commit(TypedAction(Clock.Start()), context(0))
        try clock._commit(Clock.timePassed, context(4))
        #expect(clock.rings == 0)
        try clock._commit(Clock.timePassed, context(5))
        #expect(clock.rings == 1)
        let copy = try CanonicalCoder().decode(Clock.self, from: CanonicalCoder().encode(clock))
        #expect(copy.schedule.nextDue == Timestamp(seconds: 10))
    }

    private struct Clock: ReducedModel, ScheduledModel {
        struct Start: Codable, Sendable {}
        struct Ring: Codable, Sendable {}
        struct TimePassed: Codable, Sendable {}
        static let name = "clock"
        static var timePassed: TypedAction<Clock> { TypedAction(TimePassed()) }
        static let reducers = Reducers<Clock>()
            .with(Start.self) { clock, _, context in
                clock.schedule.set(
                    TypedAction(Ring()), after: .seconds(5), every: .seconds(5), key: "ring",
                    in: context)
            }
            .with(Ring.self) { clock, _, _ in clock.rings += 1 }
            .with(TimePassed.self) { _, _, _ in }
        var rings = 0
        var schedule = Schedule<TypedAction<Clock>>()
    }
}
