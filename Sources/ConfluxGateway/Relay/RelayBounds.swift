import ConfluxVocabulary

/// The bounds of a relay.
enum RelayBounds {
    /// Messages that wait for one subscriber. *At the bound* libzmq discards further ones: the node fetches what it lacks.
    /// A message that waits for several takes its memory once.
    static let waitingMax: Int32 = 2_000
    /// Messages that have come and are not passed on yet. *At the bound* the feed waits, and then loses some.
    static let receivedMax: Int32 = 2_000
    /// Bytes of one message of the feed: those of the largest frame. *At the bound* the connection ends.
    static let messageBytesMax: Int64 = 64 << 20
    /// Bytes of what a subscriber sends. *At the bound* libzmq ends the connection.
    static let subscriptionBytesMax: Int64 = 1_024
    /// How long a subscriber may take nothing of what is sent to it. *At the bound* the system ends the connection.
    static let unreadMax = Duration.seconds(10)
    /// How long nothing may come from the feed. *At the bound* the relay goes on to the next feed.
    static let silenceMax = Duration.seconds(2)
    /// How long a connection to a feed may take until something comes. *At the bound* the relay goes on to the next feed.
    static let connectMax = Duration.seconds(5)
    /// The pause before the next attempt, which doubles with each failure in a row.
    static let pauseRange = Duration.milliseconds(50)...Duration.seconds(2)
}
