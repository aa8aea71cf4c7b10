import ConfluxVocabulary

/// How many messages of each key brought nothing, and which keys are barred for that (rule 45).
///
/// A message brings nothing where its sender goes beyond what it may: a batch above its key's rate or out of its
/// order, a fetch or a load beyond what its connection may have unacknowledged, what is said without a session or a
/// right, one hello after the other. Each takes processors from everybody, however soon it is refused. A node that
/// obeys the protocol sends few: it probes with one batch behind each pause.
///
/// Each key has an account. Such a message adds to it, and it drains at ``drainPerSecond``. A key whose account
/// comes to ``wasteMax`` is barred: its connections end, and it may not connect for a pause. For ``memory`` pauses it
/// is remembered: then an eighth is too much, and the next pause is four times as long.
struct Conduct: Sendable, Equatable {
    /// What a message was that brought nothing.
    enum Waste {
        /// It goes beyond what its sender may have on its way. It counts one.
        case surplus
        /// An honest node may send such messages by the hundred: a batch behind one that was discarded, what is said
        /// for a session that is gone, or without the right, a hello. It counts a sixteenth, and nothing while a
        /// tenure is young.
        case stale

        fileprivate var share: Double { self == .surplus ? 1 : 1.0 / 16 }
    }

    /// How many messages a key may send in vain at once.
    static let wasteMax = 1_000
    /// How many of them are forgotten a second: the probes of 160 processes of one key that are all above its rate,
    /// at one in four beats.
    static let drainPerSecond = 400.0
    /// The first pause.
    static let pauseMin = Duration.seconds(1)
    /// The longest one.
    static let pauseMax = Duration.seconds(256)
    /// For how many pauses a bar is remembered.
    static let memory = 8
    /// The part of ``wasteMax`` that is too much then.
    private static let remembered = 1.0 / 8

    private struct Account: Equatable {
        var waste = 0.0
        var countedAt: Duration
        var pause = Duration.zero
        var barredUntil = Duration.zero
    }

    /// *Invariant*: one for each key that has sent something in vain, so never more than there are keys.
    private var accounts: [Name: Account] = [:]

    /// A key has sent a message in vain.
    ///
    /// - Parameters:
    ///   - waste: What it was.
    ///   - principal: The key.
    ///   - now: The time.
    /// - Returns: For how long it is barred, if that was one too many. What of it is still on its way counts for
    ///   nothing.
    mutating func waste(_ waste: Waste, by principal: Principal, at now: Duration) -> Duration? {
        guard let name = principal.name else { return nil }
        var account = accounts[name] ?? Account(countedAt: now)
        defer { accounts[name] = account }
        guard now >= account.barredUntil else { return nil }
        let drained = max(now - account.countedAt, .zero) / .seconds(1) * Self.drainPerSecond
        account.waste = max(account.waste - drained, 0) + waste.share
        account.countedAt = now
        let isRemembered = now - account.barredUntil < account.pause * Self.memory
        let most = Double(Self.wasteMax) * (isRemembered ? Self.remembered : 1)
        guard account.waste >= most else { return nil }
        account.waste = 0
        account.pause = isRemembered ? min(account.pause * 4, Self.pauseMax) : Self.pauseMin
        account.barredUntil = now + account.pause
        return account.pause
    }
}

extension SequencerMachine {
    /// A connection's key has sent a message in vain. The key is barred if that was one too many.
    mutating func waste(
        _ waste: Conduct.Waste, by principal: Principal, at now: Duration,
        into effects: inout [SequencerEffect]
    ) {
        guard waste == .surplus || now - servingSince >= settings.wasteGrace,
            let name = principal.name,
            let pause = conduct.waste(waste, by: principal, at: now)
        else { return }
        effects.append(.note(.barred(name, for: pause)))
        effects.append(.bar(name, for: pause))
    }
}
