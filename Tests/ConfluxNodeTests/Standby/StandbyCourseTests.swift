import ConfluxLog
import ConfluxVocabulary
import Testing

@testable import ConfluxSequencer

/// What a standby does next.
struct StandbyCourseTests {
    private var course = StandbyCourse(address: "tcp://a:1", lot: 0)
    private let damage = LogError(.damaged, "Entries 1 to 2 are damaged.")
    private let failure = LogError(.unreachable, "Nobody answers.")

    private func view(_ renewal: UInt64) -> SharedLogView {
        SharedLogView(
            epoch: Epoch(3), last: SequenceNumber(9), floor: SequenceNumber(1),
            serving: ServingWord(
                epoch: Epoch(3), address: "tcp://b:1", renewal: renewal, standing: .serving))
    }

    /// Looks at the log.
    ///
    /// - Returns: Whether the log is also read.
    private mutating func look(_ renewal: UInt64, at now: Duration) -> Bool {
        guard case .look(_, let isYielding) = course.next(at: now) else {
            Issue.record("it does not look at \(now)")
            return false
        }
        #expect(course.heard(.looked(.success(view(renewal))), since: now, at: now) == nil)
        return !isYielding
    }

    @Test
    mutating func `a damaged log is read again after growing pauses of at most a minute`() {
        var now = Duration.zero
        var renewal: UInt64 = 0
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] as [Int64] {
            let end = now + .seconds(pause)
            renewal += 1
            let isRead = look(renewal, at: now)
            #expect(isRead, "\(now)")
            #expect(course.heard(.read(.failure(damage)), since: now, at: now)?.code == .damaged)
            while now + StandbyCourse.lookPause < end {
                now += StandbyCourse.lookPause
                renewal += 1
                let isRead = look(renewal, at: now)
                #expect(!isRead, "\(now)")
                #expect(course.heard(.read(.success(nil)), since: now, at: now) == nil)
            }
            now = end
        }
    }

    @Test mutating func `a damaged log is claimed only when nobody serves it`() {
        let isRead = look(1, at: .zero)
        #expect(isRead)
        #expect(course.heard(.read(.failure(damage)), since: .zero, at: .zero) != nil)
        let later = Duration.seconds(1)
        _ = look(1, at: later)
        #expect(course.heard(.read(.success(nil)), since: later, at: later) == nil)
        let former = course.takeOver(at: later)
        #expect(former == Epoch(3))
    }

    @Test(arguments: [true, false])
    mutating func `damage is forgotten when the log fails, and with the term`(_ fails: Bool) {
        for now in [Duration.zero, .seconds(1), .seconds(3)] {
            _ = look(UInt64(now / .seconds(1)), at: now)
            #expect(course.heard(.read(.failure(damage)), since: now, at: now) != nil)
        }
        var now = Duration.seconds(4)
        if fails {
            _ = course.next(at: now)
            #expect(course.heard(.looked(.failure(failure)), since: now, at: now) != nil)
            now += .seconds(1)
        } else {
            course.begin()
        }
        let isRead = look(9, at: now)
        #expect(isRead)
    }
}
