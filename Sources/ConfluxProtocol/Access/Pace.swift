import ConfluxVocabulary

/// Limits how fast keys dispatch, if they have a limit.
///
/// A batch is admitted while its key has taken less than what one second brings, and may take more. So a batch of any
/// size gets its turn, and the rate is kept on average.
struct Pace: Sendable, Equatable {
    /// *Invariant*: one for each limited key that has dispatched, so never more than there are keys.
    private var buckets: [Name: LeakyBucket] = [:]

    /// Whether a key may dispatch now.
    func allows(_ principal: Principal, at now: Duration) -> Bool {
        guard let (name, limit) = Self.limit(of: principal) else { return true }
        return limit > 0 && (buckets[name]?.level(at: now) ?? .zero) < .seconds(1)
    }

    /// Counts the actions that a key has dispatched.
    mutating func count(_ actions: UInt32, of principal: Principal, at now: Duration) {
        guard let (name, limit) = Self.limit(of: principal), limit > 0 else { return }
        buckets[name, default: LeakyBucket()].add(.seconds(1) / limit * actions, at: now)
    }

    private static func limit(of principal: Principal) -> (Name, UInt32)? {
        guard let name = principal.name, let limit = principal.rights.actionsPerSecondMax else {
            return nil
        }
        return (name, limit)
    }
}
