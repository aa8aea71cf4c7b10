import ConfluxVocabulary

/// What comes before the first entry of a log. A copy begins with the same origin.
public struct LogOrigin: Sendable, Hashable {
    /// The log's random identity.
    public let log: LogID
    /// The lowest number that the log holds.
    public let floor: SequenceNumber
    /// The hash of the commit before the floor, to which the first commit is chained.
    public let hash: ChainHash

    /// Makes an origin.
    ///
    /// - Parameters:
    ///   - log: The log's random identity.
    ///   - floor: The lowest number that the log holds, 1 or more.
    ///   - hash: The hash of the commit before the floor.
    public init(log: LogID, floor: SequenceNumber, hash: ChainHash) {
        self.log = log
        self.floor = floor
        self.hash = hash
    }
}

/// A log that can be copied, and that can be written as a copy.
///
/// A copy is written under a mark, so that no program takes it for a log. Only `adopt(after:)` removes the
/// mark. So an interrupted copy is not a log, and the next attempt starts it over.
public protocol CopiedLog: ActionLog {
    /// The origin of the log as it is now.
    ///
    /// - Throws: `damaged`, `failed`, `unreachable`, `denied`, `closed`.
    func origin() throws(LogError) -> LogOrigin

    /// The hash of the last commit of a claimed log; nil if some commits have no hash.
    var head: ChainHash? { get }

    /// Makes the copy a log, durably, and closes it.
    ///
    /// - Parameter confirm: Called when only the last step is left. If it throws, the copy remains
    ///   unfinished.
    /// - Throws: `superseded`, `unusableFolder`, `full`, `failed`, `unreachable`, `denied`, `notClaimed`,
    ///   `closed`: the copy is not a log. `unknownOutcome`: it may be one.
    func adopt(after confirm: () throws(LogError) -> Void) throws(LogError)
}
