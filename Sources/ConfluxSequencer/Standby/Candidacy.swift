import ConfluxLog
import ConfluxVocabulary

/// Decides when a standby tries to take over, and where it redirects nodes meanwhile.
///
/// It knows only hints: what the serving sequencer says about itself, and when the log last changed. So it decides
/// only when to try; the log decides whether the claim succeeds (rule 47). Time in which the log was slow or did not
/// answer does not count as silence of the serving sequencer.
///
///     serves ── silent for twice its usual pause plus a random delay ──▶ try
///     has left ── names this standby as successor ──▶ try at once; names none ──▶ try after the random delay
///     was this sequencer, until its log failed ──▶ try at once
package struct Candidacy: Sendable {
    /// The longest random delay. It keeps standbys from all trying at once.
    static let staggerMax = Duration.milliseconds(300)
    /// The usual pause between two changes of the log. The minimum is that of ``HeartbeatThread`` plus the log's
    /// own time. On a slow log it is the last observed pause, within this range.
    static let usualPause = Duration.milliseconds(500)...Duration.milliseconds(2_500)
    /// How long the named successor may take.
    static let successionMax = Duration.milliseconds(500)

    /// Where nodes reach this sequencer.
    package let address: String
    private let stagger: Duration
    /// What the last look found; nil before the first.
    package private(set) var view: SharedLogView?
    /// Since when the log has not changed.
    private var sameSince = Duration.zero
    /// When the last look began.
    private var lookedAt = Duration.zero
    /// The longest time that a look has taken since `sameSince`.
    private var slowness = Duration.zero
    private var usual = usualPause.lowerBound
    /// The epoch of a claim behind which nobody serves: ``Epoch/none`` at first, then that of the last term which this
    /// sequencer gave up.
    private var vacant = Epoch.none

    /// - Parameters:
    ///   - address: Where nodes reach this sequencer.
    ///   - lot: A random number from 0 up to, but not including, 1.
    package init(address: String, lot: Double) {
        self.address = address
        stagger = Self.staggerMax * lot
    }

    /// Takes the outcome of a look at the log.
    ///
    /// - Parameters:
    ///   - found: What the look found.
    ///   - begun: When the look began.
    ///   - now: When it ended.
    package mutating func saw(_ found: SharedLogView, since begun: Duration, at now: Duration) {
        if found != view {
            let range = Self.usualPause
            let pause = view == nil ? .zero : now - sameSince
            usual = min(max(pause, range.lowerBound), range.upperBound)
            // A heartbeat's words come with a hint, so they are seen at once. An append may be as old as the
            // last look.
            let isSaid = view?.serving != found.serving || view?.epoch != found.epoch
            begin(at: isSaid ? now : max(sameSince, lookedAt))
        }
        view = found
        lookedAt = begun
        slowness = max(slowness, now - begun)
    }

    /// Notes that this sequencer gave up the term that it claimed last, because its log failed.
    package mutating func gaveUp(_ epoch: Epoch) { vacant = epoch }

    /// Notes that the log could not be looked at.
    package mutating func failed(at now: Duration) { begin(at: now) }

    private mutating func begin(at now: Duration) {
        sameSince = now
        slowness = .zero
    }

    /// What the newest term says about itself; nil if it has said nothing yet. Words of earlier terms don't
    /// count.
    private var serving: ServingWord? {
        guard let view, view.serving?.epoch == view.epoch else { return nil }
        return view.serving
    }

    /// How long the log has to stay the same, and whether a look must have confirmed that. A process that was
    /// suspended for a while has not observed any silence.
    private var patience: (time: Duration, isSilence: Bool) {
        if let view, view.epoch == vacant { return (.zero, false) }
        return switch serving?.standing {
        case .left(let successor) where successor == address: (.zero, false)
        case .left(nil): (stagger, false)
        case .left: (Self.successionMax + stagger, false)
        // This holds even if the word has this sequencer's own address: it may come from a process that has
        // ended, or from one with the same address by mistake.
        case .serving, nil: (usual * 2 + slowness + stagger, true)
        }
    }

    /// When to try; nil before the first look.
    package var tryAt: Duration? { view == nil ? nil : sameSince + patience.time }

    /// Whether to try now.
    package func isDue(at now: Duration) -> Bool {
        guard let tryAt, now >= tryAt else { return false }
        return !patience.isSilence || lookedAt >= tryAt
    }

    /// Whether only a look is missing before it may try.
    package func needsLook(at now: Duration) -> Bool {
        guard let tryAt else { return false }
        return now >= tryAt && !isDue(at: now)
    }

    /// Where to redirect nodes; nil if no serving sequencer is known. A sequencer that is about to serve
    /// doesn't count: otherwise two standbys could redirect nodes to each other.
    package func server(at now: Duration) -> String? {
        guard let serving, case .serving = serving.standing,
            serving.address != address, now - sameSince <= usual * 1.2
        else { return nil }
        return serving.address
    }
}
