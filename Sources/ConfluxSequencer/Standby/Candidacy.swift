import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// When a sequencer that stands by tries to take over, and where it sends nodes meanwhile.
///
/// All that it knows are hints: what the one that serves says of itself, and how long ago that has changed. So it
/// decides nothing but when to try; the log says whether it has the tenure (rule 47). Time in which the log could
/// not be looked at is not silence of the other one.
///
///     says it serves ── silent for `silenceMax`, and a random while ──▶ try
///     has left, for this one, or for whoever ─────────────────────────▶ try at once, or after the random while
package struct Candidacy {
    /// How long the one that serves may be silent.
    static let silenceMax = Duration.seconds(1)
    /// The longest of the random whiles, so that not all try at once.
    static let staggerMax = Duration.milliseconds(300)
    /// How long it may be silent and nodes are still sent to it.
    static let freshMax = Duration.milliseconds(600)
    /// How long looking at the log may take, for what was found to count in time.
    static let lookMax = Duration.milliseconds(400)

    /// Where nodes reach this one.
    package let address: String
    private let stagger: Duration
    /// What was found last; nil before.
    package private(set) var view: SharedLogView?
    /// Since when what the one that serves says is the same.
    private var sameSince = Duration.zero
    /// When the last look that was quick began.
    private var lookedAt: Duration?

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
        let isNews = view.map { $0.serving != found.serving || $0.epoch != found.epoch } ?? true
        view = found
        let isQuick = now - begun <= Self.lookMax
        if isNews || !isQuick { sameSince = now }
        if isQuick { lookedAt = begun }
    }

    /// The log could not be looked at.
    package mutating func failed(at now: Duration) { sameSince = now }

    /// What the newest tenure says of itself; nil while it has said nothing. What one before it said counts no more.
    private var serving: ServingWord? {
        guard let view, view.serving?.epoch == view.epoch else { return nil }
        return view.serving
    }

    /// How long what was found has to stay the same.
    private var pause: Duration {
        switch serving?.standing {
        case .left(let successor) where successor == address: .zero
        case .left(nil): stagger
        // Also where it has this one's address: that may be a process which has ended, or another one by mistake.
        case .left, .serving: Self.silenceMax + stagger
        // Nobody has ever served; or somebody is about to.
        case nil: view?.epoch == Epoch.none ? .zero : Self.silenceMax + stagger
        }
    }

    /// When to try; nil before the log was looked at.
    package var tryAt: Duration? { view == nil ? nil : sameSince + pause }

    /// Whether to try now. Silence is what a look has found: who was stopped for a while has only not listened.
    package func isDue(at now: Duration) -> Bool {
        guard let tryAt, now >= tryAt else { return false }
        return pause < Self.silenceMax || lookedAt.map { $0 >= tryAt } ?? false
    }

    /// Whether nothing but a look is missing.
    package func needsLook(at now: Duration) -> Bool {
        guard let tryAt else { return false }
        return now >= tryAt && !isDue(at: now)
    }

    /// Where nodes are sent; nil where it is not known that another one serves. Who is only about to serve is none: two that
    /// stand by would send nodes to each other.
    package func server(at now: Duration) -> String? {
        guard let serving, case .serving = serving.standing,
            serving.address != address, now - sameSince <= Self.freshMax
        else { return nil }
        return serving.address
    }
}
