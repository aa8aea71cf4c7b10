import ConfluxVocabulary
import ConfluxZeroMQ

/// Which of several addresses the feed comes from: those of relays, and the sequencer's own. It decides, and does no I/O.
///
///     first choice ── fails, or is silent ──▶ next relay ──▶ … ──▶ the sequencer's own feed ──▶ first choice …
///          ▲                                      │                       │
///          └── it can be reached again ◀──────────┴── tried now and then ─┘
///
/// A node begins at a random relay, so that the nodes share the relays. While it follows another address, it tries its
/// first choice now and then, beside the present one, after growing pauses that differ from node to node.
struct FeedChoice {
    /// The addresses in the order in which they were given. *Use*: a later welcome may name others.
    let given: [Endpoint]
    /// The addresses in the order in which they are tried. The last one is the sequencer's own. *Invariant*: at least one.
    let addresses: [Endpoint]
    /// The address that the feed came from last; before it came from any, the first choice.
    private(set) var present: Endpoint
    /// Why it came no longer from the former address.
    private var reason: String?
    /// When the first choice is due to be tried; nil while the feed comes from it, and while it is being tried.
    private(set) var retryDue: Duration?
    private var followedSince = Duration.zero
    private var pause: Duration
    private let pauseMin: Duration
    private var random: SplitMix64

    /// The longest pause before the first choice is tried again, as a multiple of the shortest.
    static let pauseGrowthMax = 10

    /// What there is to tell.
    enum Move: Equatable {
        /// The feed comes from another address than before.
        case fellBack(from: Endpoint, to: Endpoint, reason: String)
        /// The feed comes from the first choice again.
        case restored
    }

    /// - Parameters:
    ///   - given: The addresses of relays, and then the sequencer's own. At least one.
    ///   - pause: The shortest pause before the first choice is tried again.
    ///   - seed: Decides everything that is random.
    init(_ given: [Endpoint], pause: Duration, seed: UInt64) {
        precondition(!given.isEmpty, "the sequencer has a feed")
        self.given = given
        pauseMin = pause
        self.pause = pause
        random = SplitMix64(seed: seed)
        let relays = given.dropLast()
        let start = relays.isEmpty ? 0 : Int.random(in: 0..<relays.count, using: &random)
        addresses = relays.suffix(relays.count - start) + relays.prefix(start) + given.suffix(1)
        present = addresses[0]
    }

    /// Reads what a welcome says of the feed.
    ///
    /// - Parameters:
    ///   - announced: Addresses with a space between them. The last one is the sequencer's own.
    ///   - relays: The relays that the node was told of; if there are any, those that are announced do not count.
    ///   - host: The host at which the node reaches the sequencer; nil for this machine.
    /// - Returns: The addresses of relays, and then the sequencer's own.
    /// - Throws: `invalidEndpoint`.
    static func addresses(
        announced: String, relays: [Endpoint], host: String?
    ) throws(ZeroMQError) -> [Endpoint] {
        var found: [Endpoint] = []
        for text in split(announced) {
            found.append(try Endpoint(text).replacingWildcard(with: host))
        }
        let own = found.suffix(1)
        let wanted = relays.isEmpty ? found.dropLast() : relays[...]
        return wanted.filter { !own.contains($0) } + own
    }

    /// A path may have a space, too, so a space separates only before a scheme.
    private static func split(_ announced: String) -> [String] {
        var texts: [String] = []
        for word in announced.split(separator: " ", omittingEmptySubsequences: false) {
            if texts.isEmpty || word.hasPrefix("tcp://") || word.hasPrefix("ipc://") {
                texts.append(String(word))
            } else {
                texts[texts.count - 1] += " \(word)"
            }
        }
        return texts
    }

    /// The feed no longer comes from an address, or can't come from there.
    mutating func failed(_ reason: String, at address: Endpoint) {
        // Of several failures in a row, that of the address that the feed came from says most.
        if self.reason == nil || address == present { self.reason = reason }
    }

    /// The connection to an address stands.
    ///
    /// - Returns: What there is to tell; nil if the feed comes from where it came from.
    mutating func connected(to address: Endpoint, at now: Duration) -> Move? {
        let former = present
        let reason = reason ?? "the connection ended"
        self.reason = nil
        present = address
        if address == addresses[0] {
            retryDue = nil
            if former != address { followedSince = now }
            return former == address ? nil : .restored
        }
        guard former != address else { return nil }
        if former == addresses[0] {
            // One that works for short times only is tried less and less often.
            if now - followedSince >= pauseMin * Self.pauseGrowthMax { pause = pauseMin }
            postpone(from: now)
        }
        return .fellBack(from: former, to: address, reason: reason)
    }

    /// Whether the first choice is to be tried now.
    mutating func takeRetry(at now: Duration) -> Bool {
        guard let due = retryDue, now >= due else { return false }
        retryDue = nil
        return true
    }

    /// The first choice was tried, and can't be reached.
    mutating func retryFailed(at now: Duration) {
        if present != addresses[0] { postpone(from: now) }
    }

    private mutating func postpone(from now: Duration) {
        retryDue = now + pause * Double.random(in: 0.75...1.25, using: &random)
        pause = min(pause * 2, pauseMin * Self.pauseGrowthMax)
    }
}
