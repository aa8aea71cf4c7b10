import ConfluxVocabulary

/// Limits how fast keys dispatch, if they have a limit.
///
/// Each key has an account of actions. It fills up at the key's rate, at most to what one second brings. A batch is
/// admitted while the account is positive, and may overdraw it. So a batch of any size gets its turn, and the rate is
/// kept on average.
struct Pace: Sendable, Equatable {
    private struct Account: Equatable {
        var actions: Double
        var filledAt: Duration
    }

    /// *Invariant*: one for each limited key that has dispatched, so never more than there are keys.
    private var accounts: [Name: Account] = [:]

    /// Whether a key may dispatch now.
    func allows(_ principal: Principal, at now: Duration) -> Bool {
        balance(of: principal, at: now).map { $0 > 0 } ?? true
    }

    /// Counts the actions that a key has dispatched.
    mutating func count(_ actions: UInt32, of principal: Principal, at now: Duration) {
        guard let name = principal.name, let balance = balance(of: principal, at: now) else {
            return
        }
        accounts[name] = Account(actions: balance - Double(actions), filledAt: now)
    }

    private func balance(of principal: Principal, at now: Duration) -> Double? {
        guard let name = principal.name, let limit = principal.rights.actionsPerSecondMax else {
            return nil
        }
        guard let account = accounts[name] else { return Double(limit) }
        let seconds = max(now - account.filledAt, .zero) / .seconds(1)
        return min(account.actions + seconds * Double(limit), Double(limit))
    }
}
