import ConfluxVocabulary

/// Limits how fast keys dispatch, if they have a limit.
///
/// A batch is admitted while its key has taken less than what one second brings, and may take more. So a batch of any
/// size gets its turn, and the rate is kept on average. What a key's timers dispatch counts, too. They have half of that
/// second, so that they leave room for what the key's programs dispatch.
struct Pace: Sendable, Equatable {
    static let span = Duration.seconds(1)
    static let timersSpan = Duration.milliseconds(500)

    /// *Invariant*: one for each limited key that has dispatched, so never more than there are keys.
    private var buckets: [Name: LeakyBucket] = [:]

    /// Whether a key may dispatch now.
    ///
    /// - Parameters:
    ///   - name: The key's name; nil without keys.
    ///   - limit: How many actions a second it may dispatch; nil for any number.
    ///   - span: How much of what it has taken may be left.
    ///   - now: The present time.
    /// - Returns: Whether it may.
    func allows(
        _ name: Name?, _ limit: UInt32?, within span: Duration = span, at now: Duration
    ) -> Bool {
        guard let name, let limit else { return true }
        return limit > 0 && (buckets[name]?.level(at: now) ?? .zero) < span
    }

    /// Counts the actions that a key has dispatched.
    mutating func count(_ actions: UInt32, of name: Name?, _ limit: UInt32?, at now: Duration) {
        guard let name, let limit, limit > 0 else { return }
        buckets[name, default: LeakyBucket()].add(.seconds(1) / limit * actions, at: now)
    }
}
