import ConfluxVocabulary

/// Limits how fast keys dispatch, if they have a limit.
///
/// A batch is admitted while its key has taken less than what one second brings, and may take more. So a batch of any
/// size gets its turn, and the rate is kept on average. What a key's timers dispatch counts, too.
struct Pace: Sendable, Equatable {
    private struct Limited: Sendable, Equatable {
        var limit: UInt32
        var bucket = LeakyBucket()
    }

    /// *Invariant*: one for each limited key that was heard, so never more than there are keys.
    private var keys: [Name: Limited] = [:]

    /// Learns a key's limit.
    mutating func hear(_ principal: Principal) {
        guard let name = principal.name else { return }
        if let limit = principal.rights.actionsPerSecondMax {
            keys[name, default: Limited(limit: limit)].limit = limit
        } else if !keys.isEmpty {
            keys[name] = nil
        }
    }

    /// Whether a key may dispatch now.
    func allows(_ name: Name?, at now: Duration) -> Bool {
        guard let key = name.flatMap({ keys[$0] }) else { return true }
        return key.limit > 0 && key.bucket.level(at: now) < .seconds(1)
    }

    /// Counts the actions that a key has dispatched.
    mutating func count(_ actions: UInt32, of name: Name?, at now: Duration) {
        guard let name, let limit = keys[name]?.limit, limit > 0 else { return }
        keys[name]?.bucket.add(.seconds(1) / limit * actions, at: now)
    }
}
