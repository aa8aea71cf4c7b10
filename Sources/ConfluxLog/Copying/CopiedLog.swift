import ConfluxVocabulary

/// What a log has before its first entry; a copy begins with the same.
public struct LogOrigin: Sendable, Hashable {
    /// The log's random identity.
    public let log: LogID
    /// The lowest number that the log holds.
    public let floor: SequenceNumber
    /// The hash of the commit before that, to which the next one is chained.
    public let hash: ChainHash

    /// Makes an origin.
    ///
    /// - Parameters:
    ///   - log: The log's random identity.
    ///   - floor: The lowest number that the log holds, 1 or more.
    ///   - hash: The hash of the commit before that.
    public init(log: LogID, floor: SequenceNumber, hash: ChainHash) {
        self.log = log
        self.floor = floor
        self.hash = hash
    }
}

/// A log that can be copied, and that can be such a copy.
///
/// A copy is written under a mark, which keeps every program from taking it for a log. Only `adopt(after:)` removes the
/// mark; so a copy that was interrupted is no log, and the next attempt begins it anew.
public protocol CopiedLog: ActionLog {
    /// Where the log begins now.
    ///
    /// - Throws: `damaged`, `failed`, `unreachable`, `denied`, `closed`.
    func origin() throws(LogError) -> LogOrigin

    /// The hash of the last commit of a log that was claimed; nil if not all commits have hashes.
    var head: ChainHash? { get }

    /// Makes a copy the log of its place, durably, and closes it.
    ///
    /// - Parameter confirm: Called when nothing but the last step is left. What it throws leaves the copy unfinished.
    /// - Throws: `superseded`, `unusableFolder`, `full`, `failed`, `unreachable`, `denied`, `notClaimed`, `closed`: it
    ///   is no log. `unknownOutcome`: it may be the log.
    func adopt(after confirm: () throws(LogError) -> Void) throws(LogError)
}
