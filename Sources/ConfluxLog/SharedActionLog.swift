import ConfluxVocabulary

/// A log that several sequencers may open: one has the tenure, and the others follow the log and stand by.
///
/// Only a claim begins a tenure, and only the condition of each append fences (``ActionLog``). Beside the log,
/// sequencers announce that they serve, stand by or leave. These announcements are hints: they say where to redirect
/// nodes, and when to try a claim. A wrong hint costs time and nothing else.
public protocol SharedActionLog: ActionLog {
    /// Reads the state of the log at one moment, and updates `last` and `floor`. It needs no claim.
    ///
    /// - Returns: The state.
    /// - Throws: `damaged`, `unreachable`, `denied`, `failed`, `closed`.
    func look() throws(LogError) -> SharedLogView

    /// Begins a tenure like `claim(raisingEpochBy:)`, if nobody else has since that epoch. It announces the serving
    /// sequencer in the same step: nobody sees the claim without the announcement.
    ///
    /// - Parameters:
    ///   - step: By how much the epoch rises, 1 or more.
    ///   - epoch: The newest claim's epoch, from ``look()``.
    ///   - address: The address at which nodes reach the claiming sequencer.
    ///   - won: Called as soon as the claim is made, with the object that announces that the tenure serves. Use it on
    ///     another thread; it has connections of its own. Verifying the log may take long, and other sequencers take
    ///     over when the announcements stop.
    /// - Returns: The new epoch, and where the log ends.
    /// - Throws: `superseded` if there was another claim; otherwise like `claim(raisingEpochBy:)`.
    func claim(
        raisingEpochBy step: UInt64, after epoch: Epoch, as address: String,
        _ won: (any TenureHerald, Epoch) -> Void
    ) throws(LogError) -> LogClaim

    /// Announces that a sequencer stands by. Repeat it every second: a silent standby is forgotten.
    ///
    /// - Parameter standby: The standby, and how far it has followed the log.
    /// - Throws: `unreachable`, `denied`, `full`, `failed`, `closed`.
    func standBy(_ standby: StandbyWord) throws(LogError)

    /// Calls a function when the announcement of the serving sequencer may have changed, until the log is claimed or
    /// closed.
    ///
    /// - Parameter tell: Called on a thread of the engine; it must not wait. It is a hint: ``look()`` finds the truth.
    func watchServing(_ tell: @escaping @Sendable () -> Void)

    /// Announces that a sequencer no longer stands by.
    ///
    /// - Parameter address: The address at which nodes reached it.
    /// - Throws: `unreachable`, `denied`, `failed`, `closed`.
    func standDown(_ address: String) throws(LogError)
}

/// Announces, beside the log, that a tenure serves. One thread at a time owns it.
public protocol TenureHerald: AnyObject {
    /// Repeats the announcement, if the tenure's claim is still the newest.
    ///
    /// - Parameter word: The announcement.
    /// - Returns: The standbys that announced themselves during the last seconds of this tenure.
    /// - Throws: `superseded`; `unreachable`, `denied`, `full`, `failed`, `unknownOutcome`: the announcement may or may
    ///   not have been made. No call takes longer than about two seconds.
    func say(_ word: ServingWord) throws(LogError) -> [StandbyWord]
}

/// The announcement of the serving sequencer.
public struct ServingWord: Sendable, Hashable {
    /// Whether it serves or has left.
    public enum Standing: Sendable, Hashable {
        /// It serves, or is about to.
        case serving
        /// It has left. The sequencer with this address is to take over; with nil any standby may.
        case left(successor: String?)
    }

    /// Its tenure.
    public var epoch: Epoch
    /// The address at which nodes reach it.
    public var address: String
    /// Rises with each announcement, so that others see that it is alive.
    public var renewal: UInt64
    /// How it is.
    public var standing: Standing

    /// Makes an announcement.
    public init(epoch: Epoch, address: String, renewal: UInt64, standing: Standing) {
        self.epoch = epoch
        self.address = address
        self.renewal = renewal
        self.standing = standing
    }
}

/// The announcement of a standby.
public struct StandbyWord: Sendable, Hashable {
    /// The address at which nodes reach it. Each sequencer of a log has an address of its own.
    public var address: String
    /// The number up to which it has followed the log.
    public var last: SequenceNumber
    /// Rises with each announcement.
    public var renewal: UInt64

    /// Makes an announcement.
    public init(address: String, last: SequenceNumber, renewal: UInt64) {
        self.address = address
        self.last = last
        self.renewal = renewal
    }
}

/// The state of a log at one moment.
public struct SharedLogView: Sendable, Hashable {
    /// The newest claim's epoch; `none` before the first.
    public var epoch: Epoch
    /// Where the log ends.
    public var last: SequenceNumber
    /// The lowest number that it holds.
    public var floor: SequenceNumber
    /// The last announcement of a serving sequencer; nil if there is none, or it can't be read.
    public var serving: ServingWord?

    /// Makes a view.
    public init(epoch: Epoch, last: SequenceNumber, floor: SequenceNumber, serving: ServingWord?) {
        self.epoch = epoch
        self.last = last
        self.floor = floor
        self.serving = serving
    }
}
