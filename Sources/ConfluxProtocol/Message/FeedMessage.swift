import ConfluxVocabulary

/// What the feed carries. It is a hint: whatever it drops is fetched.
public enum FeedMessage: Sendable, Equatable {
    /// Entries that are durable.
    case commit(Commit)
    /// The feed's heartbeat.
    case beat(Beat)
}

/// The feed's heartbeat, by which a lost last commit is seen (rule 6), and the first message of
/// every subscription, by which it is proven (rule 4).
public struct Beat: Sendable, Hashable {
    /// The log's id.
    public var log: LogID
    /// The last committed number.
    public var last: SequenceNumber
    /// The lowest number that the log still holds.
    public var floor: SequenceNumber

    /// Makes a beat.
    public init(log: LogID, last: SequenceNumber, floor: SequenceNumber) {
        self.log = log
        self.last = last
        self.floor = floor
    }
}
