import ConfluxVocabulary

/// A message of the feed. The feed may drop messages: nodes fetch what they miss.
public enum FeedMessage: Sendable, Equatable {
    /// Entries that are durable.
    case commit(Commit)
    /// The feed's heartbeat.
    case beat(Beat)
}

/// The feed's heartbeat, which shows a node that it lost the last commit (rule 6). It is also the
/// first message of every subscription, which it proves (rule 4).
public struct Beat: Sendable, Hashable {
    /// The log's id.
    public var log: LogID
    /// The last committed number.
    public var last: SequenceNumber
    /// The lowest number that the log still holds.
    public var floor: SequenceNumber
}
