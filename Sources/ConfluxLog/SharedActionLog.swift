import ConfluxVocabulary

/// A log that several sequencers may open: one has the tenure, and the others follow the log and stand by.
///
/// Only a claim makes a tenure, and only the comparison in each append fences (``ActionLog``). What sequencers say of
/// themselves beside the log, who serves, who stands by and who has left, is a hint: it says where nodes may be
/// sent, and when a claim may be worth trying. Whoever believes a wrong hint loses time and nothing else.
public protocol SharedActionLog: ActionLog {
    /// Looks how the log is, at one moment; `last` and `floor` are then what was found. It needs no claim.
    ///
    /// - Returns: What was found.
    /// - Throws: `damaged`, `unreachable`, `denied`, `failed`, `closed`.
    func look() throws(LogError) -> SharedLogView

    /// Begins a tenure as `claim(raisingEpochBy:)`, if nobody has since that epoch, and says with it who serves: nobody sees
    /// the claim without that.
    ///
    /// - Parameters:
    ///   - step: By how much the epoch rises, 1 or more.
    ///   - epoch: The newest claim's epoch, as ``look()`` has found it.
    ///   - address: Where nodes reach the one that claims it.
    ///   - won: Called as soon as the claim is made, with what says that the tenure serves: for another thread, with
    ///     connections of its own. To verify the log may take long, and other sequencers take over behind a silence.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `superseded` where there was another claim; else as `claim(raisingEpochBy:)`.
    func claim(
        raisingEpochBy step: UInt64, after epoch: Epoch, as address: String,
        _ won: (any TenureHerald, Epoch) -> Void
    ) throws(LogError) -> LogClaim

    /// Says that a sequencer stands by. Say it again every second: one that falls silent is forgotten.
    ///
    /// - Parameter standby: Which one, and how far it is.
    /// - Throws: `unreachable`, `denied`, `full`, `failed`, `closed`.
    func standBy(_ standby: StandbyWord) throws(LogError)

    /// Has somebody told, until the log is claimed or closed, when what the one that serves says may have changed.
    ///
    /// - Parameter tell: Called on a thread of the engine's; it must not wait. It is a hint, as ``look()`` tells.
    func watchServing(_ tell: @escaping @Sendable () -> Void)

    /// Says that a sequencer stands by no more.
    ///
    /// - Parameter address: Where nodes reached it.
    /// - Throws: `unreachable`, `denied`, `failed`, `closed`.
    func standDown(_ address: String) throws(LogError)
}

/// Says beside the log that a tenure serves. One thread at a time owns it.
public protocol TenureHerald: AnyObject {
    /// Says it once more, if the tenure's claim is still the newest.
    ///
    /// - Parameter word: What to say.
    /// - Returns: Who stands by: each has said something during the last seconds of this tenure.
    /// - Throws: `superseded`; `unreachable`, `denied`, `full`, `failed`, `unknownOutcome`: it was not said, or may have
    ///   been. No call takes longer than some two seconds.
    func say(_ word: ServingWord) throws(LogError) -> [StandbyWord]
}

/// What the sequencer that serves says of itself.
public struct ServingWord: Sendable, Hashable {
    /// How it is.
    public enum Standing: Sendable, Hashable {
        /// It serves, or is about to.
        case serving
        /// It has left. The one with this address is to take over; without one any may.
        case left(successor: String?)
    }

    /// Its tenure.
    public var epoch: Epoch
    /// Where nodes reach it.
    public var address: String
    /// Rises each time that it is said: by that others see that it is there.
    public var renewal: UInt64
    /// How it is.
    public var standing: Standing

    /// Makes what is said.
    public init(epoch: Epoch, address: String, renewal: UInt64, standing: Standing) {
        self.epoch = epoch
        self.address = address
        self.renewal = renewal
        self.standing = standing
    }
}

/// What a sequencer that stands by says of itself.
public struct StandbyWord: Sendable, Hashable {
    /// Where nodes reach it: no two sequencers of a log have one address.
    public var address: String
    /// The number up to which it has followed the log.
    public var last: SequenceNumber
    /// Rises each time that it is said.
    public var renewal: UInt64

    /// Makes what is said.
    public init(address: String, last: SequenceNumber, renewal: UInt64) {
        self.address = address
        self.last = last
        self.renewal = renewal
    }
}

/// How a log was at one moment.
public struct SharedLogView: Sendable, Hashable {
    /// The newest claim's epoch; `none` before the first.
    public var epoch: Epoch
    /// Where the log ends.
    public var last: SequenceNumber
    /// The lowest number that it holds.
    public var floor: SequenceNumber
    /// What was said last by one that serves; nil where nothing was, or it can't be read.
    public var serving: ServingWord?

    /// Makes a view.
    public init(epoch: Epoch, last: SequenceNumber, floor: SequenceNumber, serving: ServingWord?) {
        self.epoch = epoch
        self.last = last
        self.floor = floor
        self.serving = serving
    }
}
