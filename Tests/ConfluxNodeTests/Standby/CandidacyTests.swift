import ConfluxLog
import ConfluxVocabulary
import Testing

@testable import ConfluxSequencer

/// When a standby tries to take over, and where it sends nodes.
struct CandidacyTests {
    private let silenceMax = Candidacy.usualPause.lowerBound * 2
    private let own = "tcp://a:1"
    private let other = "tcp://b:1"

    private func view(
        _ renewal: UInt64, _ standing: ServingWord.Standing = .serving, at address: String
    ) -> SharedLogView {
        SharedLogView(
            epoch: Epoch(3), last: SequenceNumber(9), floor: SequenceNumber(1),
            serving: ServingWord(
                epoch: Epoch(3), address: address, renewal: renewal, standing: standing))
    }

    private func candidacy(lot: Double = 0.5) -> Candidacy { Candidacy(address: own, lot: lot) }

    @Test func `a standby tries nothing before it has seen the log`() {
        #expect(candidacy().tryAt == nil)
        #expect(candidacy().server(at: .zero) == nil)
    }

    @Test func `a standby tries at once if nobody ever served`() {
        var candidacy = candidacy()
        candidacy.saw(
            SharedLogView(
                epoch: .none, last: .zero, floor: SequenceNumber(1), serving: nil),
            since: .seconds(1), at: .seconds(1))
        #expect(candidacy.tryAt == .seconds(1))
    }

    /// `0`: the term had not said anything yet.
    @Test(arguments: [0, 7] as [UInt64])
    func `a sequencer whose log failed tries at once if nobody has claimed the log since`(
        _ renewal: UInt64
    ) {
        var candidacy = candidacy()
        candidacy.gaveUp(Epoch(3))
        candidacy.failed(at: .seconds(2))
        var found = view(renewal, at: own)
        if renewal == 0 { found.serving = nil }
        candidacy.saw(found, since: .seconds(5), at: .seconds(5))
        #expect(candidacy.isDue(at: .seconds(5)))
        var later = self.candidacy()
        later.gaveUp(Epoch(2))
        later.saw(view(7, at: other), since: .seconds(5), at: .seconds(5))
        #expect(later.tryAt ?? .zero > .seconds(5) + silenceMax)
    }

    @Test func `a standby waits as long as the other sequencer says that it serves`() {
        var candidacy = candidacy()
        for step in 1...40 {
            let now = Duration.milliseconds(250 * step)
            candidacy.saw(view(UInt64(step), at: other), since: now, at: now)
            #expect(candidacy.tryAt ?? .zero > now + silenceMax)
            #expect(candidacy.server(at: now) == other)
        }
    }

    @Test func `after a silence standbys try, and not all at the same time`() {
        var early = candidacy(lot: 0)
        var late = candidacy(lot: 0.99)
        early.saw(view(1, at: other), since: .zero, at: .zero)
        late.saw(view(1, at: other), since: .zero, at: .zero)
        for step in 1...8 {
            let now = Duration.milliseconds(100 * step)
            early.saw(view(1, at: other), since: now, at: now)
            late.saw(view(1, at: other), since: now, at: now)
        }
        #expect(early.tryAt == silenceMax)
        #expect(late.tryAt ?? .zero > silenceMax)
        #expect(late.tryAt ?? .zero < silenceMax + Candidacy.staggerMax)
        #expect(early.server(at: .milliseconds(600)) == other)
        #expect(early.server(at: .milliseconds(800)) == nil)
    }

    @Test func `time in which the log was not seen does not count as the other's silence`() {
        var failed = candidacy(lot: 0)
        failed.saw(view(1, at: other), since: .zero, at: .zero)
        failed.failed(at: .seconds(5))
        #expect(failed.tryAt == .seconds(5) + silenceMax)
        var slow = candidacy(lot: 0)
        slow.saw(view(1, at: other), since: .zero, at: .zero)
        slow.saw(view(1, at: other), since: .seconds(1), at: .seconds(3))
        #expect(slow.tryAt == .seconds(2) + silenceMax)
        #expect(!slow.isDue(at: .seconds(3)))
    }

    @Test func `a sequencer that appends is not silent, and a rarely heard one gets more time`() {
        var candidacy = candidacy(lot: 0)
        var found = view(1, at: other)
        candidacy.saw(found, since: .zero, at: .zero)
        for step in 1...20 {
            let now = Duration.milliseconds(900 * step)
            found.last = found.last.next
            candidacy.saw(found, since: now, at: now)
            #expect(candidacy.tryAt ?? .zero >= now + .milliseconds(step == 1 ? 100 : 800))
            #expect(!candidacy.isDue(at: now + .milliseconds(900)))
            #expect(candidacy.server(at: now) == other)
        }
        // The longer time doesn't last once the sequencer is faster again.
        for renewal in UInt64(2)...3 {
            let now = Duration.seconds(19) + .milliseconds(100 * renewal)
            candidacy.saw(view(renewal, at: other), since: now, at: now)
        }
        #expect(candidacy.tryAt == .milliseconds(19_300) + silenceMax)
    }

    @Test func `a successor takes over at once, and others wait for it`() {
        var named = candidacy()
        named.saw(view(2, .left(successor: own), at: other), since: .zero, at: .seconds(0))
        #expect(named.tryAt == .zero)
        #expect(named.server(at: .zero) == nil)
        var unnamed = candidacy(lot: 0)
        unnamed.saw(view(2, .left(successor: "tcp://c:1"), at: other), since: .zero, at: .zero)
        #expect(unnamed.tryAt == Candidacy.successionMax)
        // The successor does not serve yet.
        #expect(unnamed.server(at: .zero) == nil)
    }

    @Test func `standbys try soon after a sequencer left without a successor`() {
        var candidacy = candidacy(lot: 0.5)
        candidacy.saw(view(2, .left(successor: nil), at: other), since: .zero, at: .zero)
        #expect(candidacy.tryAt == Candidacy.staggerMax * 0.5)
    }

    @Test
    func `a standby waits for a sequencer with its own address like for any other`() {
        var candidacy = candidacy(lot: 0)
        candidacy.saw(view(7, at: own), since: .zero, at: .zero)
        #expect(candidacy.tryAt == silenceMax)
        #expect(candidacy.server(at: .zero) == nil)
        candidacy.saw(view(8, at: own), since: .milliseconds(250), at: .milliseconds(250))
        #expect(candidacy.tryAt == .milliseconds(250) + silenceMax)
    }

    @Test func `a standby that was itself stopped looks again before it tries`() {
        var candidacy = candidacy(lot: 0)
        candidacy.saw(view(1, at: other), since: .zero, at: .zero)
        let later = Duration.seconds(5)
        #expect(!candidacy.isDue(at: later) && candidacy.needsLook(at: later))
        var silent = candidacy
        silent.saw(view(1, at: other), since: later, at: later)
        #expect(silent.isDue(at: later) && !silent.needsLook(at: later))
        candidacy.saw(view(9, at: other), since: later, at: later)
        #expect(!candidacy.isDue(at: later) && (candidacy.tryAt ?? .zero) >= later + silenceMax)
    }

    @Test func `a former term's messages no longer count once there is a newer claim`() {
        for standing in [
            ServingWord.Standing.left(successor: own), .left(successor: nil), .serving,
        ] {
            var candidacy = candidacy(lot: 0)
            var found = view(2, standing, at: other)
            found.epoch = Epoch(4)
            candidacy.saw(found, since: .zero, at: .zero)
            #expect(candidacy.tryAt == silenceMax)
            #expect(candidacy.server(at: .zero) == nil)
        }
    }
}
