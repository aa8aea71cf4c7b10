import ConfluxVocabulary

/// Actions of a node that dispatches without joining (rule 42). The message has all that is needed to begin its
/// session, or to find it. So it may arrive at any time, and more than once.
public struct Visit: Sendable, Equatable {
    /// What a visit says about its session.
    public struct Session: Sendable, Hashable {
        /// The random number of the process, by which its session is found.
        public var nonce: Nonce
        /// The lowest `last` of all welcomes that the process got. If its session began, it began
        /// behind that number.
        public var since: SequenceNumber
        /// The counter up to which the node has every outcome.
        public var settled: UInt64

        /// Makes a session's part of a visit.
        public init(nonce: Nonce, since: SequenceNumber, settled: UInt64) {
            self.nonce = nonce
            self.since = since
            self.settled = settled
        }
    }

    /// The session of the actions.
    public var session: Session
    /// The actions.
    public var batch: Batch

    /// Makes a visit.
    public init(session: Session, batch: Batch) {
        self.session = session
        self.batch = batch
    }
}
