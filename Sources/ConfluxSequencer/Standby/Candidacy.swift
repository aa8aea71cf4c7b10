import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// When a sequencer that stands by tries to take over, and where it sends nodes meanwhile.
///
/// All that it knows are hints: what the one that serves says of itself, and how long ago anything of the log has
/// changed. So it decides nothing but when to try; the log says whether it has the tenure (rule 47). Time that the
/// log took to answer, or did not answer in, is not silence of the other one.
///
///     says it serves ── silent for twice its usual pause, and a random while ──▶ try
///     has left, for this one, or for whoever ─────────────────────────▶ try at once, or after the random while
package struct Candidacy: Sendable {
    /// The longest of the random whiles, so that not all try at once.
    static let staggerMax = Duration.milliseconds(300)
    /// The usual pause between two changes: that of ``HeraldThread``, and what the log takes; or what it was last, on
    /// a log that is slow.
    static let usualPause = Duration.milliseconds(500)...Duration.milliseconds(2_500)
    /// How long the one that was named as the successor may take.
    static let successionMax = Duration.milliseconds(500)

    /// Where nodes reach this one.
    package let address: String
    private let stagger: Duration
    /// What was found last; nil before.
    package private(set) var view: SharedLogView?
    /// Since when that is the same.
    private var sameSince = Duration.zero
    /// When the last look began.
    private var lookedAt = Duration.zero
    /// The longest that a look has taken since then.
    private var slowness = Duration.zero
    private var usual = usualPause.lowerBound

    /// - Parameters:
    ///   - address: Where nodes reach this one.
    ///   - lot: From 0 to below 1, at random.
    package init(address: String, lot: Double) {
        self.address = address
        stagger = Self.staggerMax * lot
    }

    /// The log was looked at.
    ///
    /// - Parameters:
    ///   - found: What was found.
    ///   - begun: When the looking began.
    ///   - now: When it ended.
    package mutating func saw(_ found: SharedLogView, since begun: Duration, at now: Duration) {
        if found != view {
            let range = Self.usualPause
            let pause = view == nil ? .zero : now - sameSince
            usual = min(max(pause, range.lowerBound), range.upperBound)
            // Its words come with a hint, so that they are seen at once. An append may be as old as the last look.
            let isSaid = view?.serving != found.serving || view?.epoch != found.epoch
            begin(at: isSaid ? now : max(sameSince, lookedAt))
        }
        view = found
        lookedAt = begun
        slowness = max(slowness, now - begun)
    }

    /// The log could not be looked at.
    package mutating func failed(at now: Duration) { begin(at: now) }

    private mutating func begin(at now: Duration) {
        sameSince = now
        slowness = .zero
    }

    /// What the newest tenure says of itself; nil while it has said nothing. What one before it said counts no more.
    private var serving: ServingWord? {
        guard let view, view.serving?.epoch == view.epoch else { return nil }
        return view.serving
    }

    /// How long the log has to stay the same, and whether a look must have found that: a process that was stopped for a
    /// while has only not listened.
    private var patience: (time: Duration, isSilence: Bool) {
        switch serving?.standing {
        case .left(let successor) where successor == address: (.zero, false)
        case .left(nil): (stagger, false)
        case .left: (Self.successionMax + stagger, false)
        // Nobody has ever served.
        case nil where view?.epoch == Epoch.none: (.zero, false)
        // Also where it has this one's address: that may be a process which has ended, or another one by mistake.
        case .serving, nil: (usual * 2 + slowness + stagger, true)
        }
    }

    /// When to try; nil before the log was looked at.
    package var tryAt: Duration? { view == nil ? nil : sameSince + patience.time }

    /// Whether to try now.
    package func isDue(at now: Duration) -> Bool {
        guard let tryAt, now >= tryAt else { return false }
        return !patience.isSilence || lookedAt >= tryAt
    }

    /// Whether nothing but a look is missing.
    package func needsLook(at now: Duration) -> Bool {
        guard let tryAt else { return false }
        return now >= tryAt && !isDue(at: now)
    }

    /// Where nodes are sent; nil if it is not known that another one serves. Who is only about to serve is none: two that
    /// stand by would send nodes to each other.
    package func server(at now: Duration) -> String? {
        guard let serving, case .serving = serving.standing,
            serving.address != address, now - sameSince <= usual * 1.2
        else { return nil }
        return serving.address
    }
}
