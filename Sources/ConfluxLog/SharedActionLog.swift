import ConfluxVocabulary

/// A log that several sequencers may open: one has the term, and the others follow the log and stand by.
///
/// Only a claim begins a term, and only the condition of each append fences (``ActionLog``). Beside the
/// log, sequencers say who serves, who stands by and who has left. These words are hints: they tell where to
/// redirect nodes, and when to try a claim. A wrong hint costs time and nothing else.
public protocol SharedActionLog: ActionLog {
    /// Looks at the log at one moment, and updates `last` and `floor`. It needs no claim.
    ///
    /// - Returns: What it found.
    /// - Throws: `damaged`, `unreachable`, `denied`, `failed`, `closed`.
    func look() throws(LogError) -> SharedLogView

    /// Begins a term like `claim(raisingEpochBy:)`, unless another claim was made since that epoch.
    /// Together with the claim it says who serves, so that nobody sees the one without the other.
    ///
    /// - Parameters:
    ///   - step: By how much the epoch rises, 1 or more.
    ///   - epoch: The epoch of the newest claim that ``look()`` has found.
    ///   - address: Where nodes reach the claiming sequencer.
    ///   - won: Called as soon as the claim is made, with the term's heartbeat, which another thread uses,
    ///     with connections of its own. It is called before the log is verified, since that may take long,
    ///     and other sequencers take over after a silence.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `superseded` if there was another claim; otherwise like `claim(raisingEpochBy:)`.
    func claim(
        raisingEpochBy step: UInt64, after epoch: Epoch, as address: String,
        _ won: (any TermHeartbeat, Epoch) -> Void
    ) throws(LogError) -> LogClaim

    /// Says that a sequencer stands by. Repeat it every second: a standby that falls silent is forgotten.
    ///
    /// - Parameter standby: The standby, and how far it has followed the log.
    /// - Throws: `unreachable`, `denied`, `full`, `failed`, `closed`.
    func standBy(_ standby: StandbyWord) throws(LogError)

    /// Registers a function to call when the words of the serving sequencer may have changed, until the log
    /// is claimed or closed.
    ///
    /// - Parameter tell: Called on one of the engine's threads; it must not block. It is a hint; ``look()``
    ///   tells the truth.
    func watchServing(_ tell: @escaping @Sendable () -> Void)

    /// Says that a sequencer no longer stands by.
    ///
    /// - Parameter address: The address at which nodes reached it.
    /// - Throws: `unreachable`, `denied`, `failed`, `closed`.
    func standDown(_ address: String) throws(LogError)
}

/// Announces, beside the log, that a term serves. One thread at a time owns it.
public protocol TermHeartbeat: AnyObject {
    /// Says the word, if the term's claim is still the newest.
    ///
    /// - Parameter word: The word to say.
    /// - Returns: The standbys that have announced themselves in the last seconds of this term.
    /// - Throws: `superseded`; `unreachable`, `denied`, `full`, `failed`, `unknownOutcome`: the word was not said, or
    ///   that is unknown. No call takes longer than about two seconds.
    func say(_ word: ServingWord) throws(LogError) -> [StandbyWord]
}

/// What a serving sequencer says about itself.
public struct ServingWord: Sendable, Hashable {
    /// Whether it serves or has left.
    public enum Standing: Sendable, Hashable {
        /// It serves, or is about to.
        case serving
        /// It has left. The standby with this address is to take over; without an address, any standby may.
        case left(successor: String?)
    }

    /// Its term.
    public var epoch: Epoch
    /// The address at which nodes reach it.
    public var address: String
    /// Rises each time that the word is said, which shows others that the sequencer is alive.
    public var renewal: UInt64
    /// Whether it serves or has left.
    public var standing: Standing

    /// Makes a word.
    public init(epoch: Epoch, address: String, renewal: UInt64, standing: Standing) {
        self.epoch = epoch
        self.address = address
        self.renewal = renewal
        self.standing = standing
    }
}

/// What a standby says about itself.
public struct StandbyWord: Sendable, Hashable {
    /// Where nodes reach it. Each sequencer of a log has its own address.
    public var address: String
    /// The number up to which it has followed the log.
    public var last: SequenceNumber
    /// Rises each time that the word is said.
    public var renewal: UInt64

    /// Makes a word.
    public init(address: String, last: SequenceNumber, renewal: UInt64) {
        self.address = address
        self.last = last
        self.renewal = renewal
    }
}

/// A log as it was at one moment.
public struct SharedLogView: Sendable, Hashable {
    /// The newest claim's epoch; `none` before the first.
    public var epoch: Epoch
    /// Where the log ends.
    public var last: SequenceNumber
    /// The lowest number that it holds.
    public var floor: SequenceNumber
    /// The last word of a serving sequencer; nil if there is none, or it can't be read.
    public var serving: ServingWord?

    /// Makes a view.
    public init(epoch: Epoch, last: SequenceNumber, floor: SequenceNumber, serving: ServingWord?) {
        self.epoch = epoch
        self.last = last
        self.floor = floor
        self.serving = serving
    }
}
