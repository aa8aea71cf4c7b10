import Testing

@testable import Conflux

/// The deadlines of waits.
struct DeadlineTests {
    @Test(.timeLimit(.minutes(1)))
    func `each deadline that is not forgotten comes once, and not early`() async {
        let (came, calls) = AsyncStream.makeStream(
            of: (number: Int, at: ContinuousClock.Instant).self)
        let begun = ContinuousClock.now
        // So far in the future that all are set before the first one comes.
        let times = (0..<2_000).map { Duration.milliseconds(500) + .microseconds($0 * 50) }
        let deadlines = times.indices.shuffled().map { number in
            (number, times[number].whenOver { calls.yield((number, .now)) })
        }
        // Most are forgotten, so that they are removed from between the others.
        for (number, deadline) in deadlines where !number.isMultiple(of: 5) { deadline?.forget() }
        let expected = times.indices.filter { $0.isMultiple(of: 5) }
        var seen: Set<Int> = []
        for await call in came {
            #expect(call.at - begun >= times[call.number])
            #expect(seen.insert(call.number).inserted)
            if seen.count == expected.count { break }
        }
        #expect(seen == Set(expected))
        calls.finish()
    }

    @Test func `a time that never ends has no deadline`() {
        #expect(Duration.seconds(Int64.max).whenOver { Issue.record("it is over") } == nil)
    }

    @Test(.timeLimit(.minutes(1)))
    func `an earlier deadline does not wait for a later one`() async {
        let later = Duration.seconds(3_600).whenOver { Issue.record("an hour is over") }
        defer { later?.forget() }
        await withCheckedContinuation { continuation in
            Duration.milliseconds(1).whenOver { continuation.resume() }
        }
    }
}
