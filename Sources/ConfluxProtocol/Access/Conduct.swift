import ConfluxVocabulary

/// Counts the useless messages of each key, and decides which keys are barred for them (rule 45).
///
/// A message is useless if its sender goes beyond what it may: a batch above its key's rate or out of order, a fetch
/// or a load while too many of its connection wait or too much waits to be sent there, a message without a session or
/// a right, one hello after another. Each such message costs everybody processor time, however soon it is refused. A node that
/// obeys the protocol sends few of them: it probes with one batch after each pause.
///
/// Each key has a bucket. A useless message adds to it, and it drains at ``drainPerSecond``. A key whose bucket
/// reaches ``wasteMax`` is barred: its connections end, and it may not connect for a pause. The bar is remembered for
/// ``memory`` times that pause. Meanwhile an eighth of ``wasteMax`` is enough for the next bar, whose pause is four
/// times as long.
struct Conduct: Sendable, Equatable {
    /// Why a message is useless.
    enum Waste {
        /// It goes beyond what its sender may have under way. It counts one.
        case surplus
        /// Honest nodes may send such messages by the hundred: a batch behind a discarded one, a message for a
        /// session that is gone or without the right, a hello. It counts a sixteenth, and nothing while a term is
        /// young.
        case stale

        fileprivate var cost: Duration {
            .seconds(1) / Conduct.drainPerSecond / (self == .surplus ? 1 : 16)
        }
    }

    /// The number of useless messages at which a key is barred.
    static let wasteMax = 1_000
    /// How many useless messages are forgotten each second: the probes of 160 processes of one key that are all above
    /// its rate, with one probe in four beats.
    static let drainPerSecond = 400
    /// The first pause.
    static let pauseMin = Duration.seconds(1)
    /// The longest pause.
    static let pauseMax = Duration.seconds(256)
    /// For how many pauses a bar is remembered after it ends.
    static let memory = 8
    /// By how much ``wasteMax`` is divided while a bar is remembered.
    private static let remembered = 8

    private struct Account: Equatable {
        var waste = LeakyBucket()
        var pause = Duration.zero
        var barredUntil = Duration.zero
    }

    /// *Invariant*: one for each key that has sent a useless message, so never more than there are keys.
    private var accounts: [Name: Account] = [:]

    /// Counts a useless message of a key.
    ///
    /// - Parameters:
    ///   - waste: Why the message is useless.
    ///   - principal: The key.
    ///   - now: The time.
    /// - Returns: How long the key is barred, if this message was one too many. Messages that are still on their way
    ///   when a bar begins don't count.
    mutating func waste(_ waste: Waste, by principal: Principal, at now: Duration) -> Duration? {
        guard let name = principal.name else { return nil }
        var account = accounts[name] ?? Account()
        defer { accounts[name] = account }
        guard now >= account.barredUntil else { return nil }
        account.waste.add(waste.cost, at: now)
        let isRemembered = now - account.barredUntil < account.pause * Self.memory
        let most = Waste.surplus.cost * (Self.wasteMax / (isRemembered ? Self.remembered : 1))
        guard account.waste.level(at: now) >= most else { return nil }
        account.waste.empty()
        account.pause = isRemembered ? min(account.pause * 4, Self.pauseMax) : Self.pauseMin
        account.barredUntil = now + account.pause
        return account.pause
    }
}

extension SequencerMachine {
    /// Counts a useless message of a connection's key, and bars the key if that was one too many.
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
