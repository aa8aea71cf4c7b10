import ConfluxVocabulary

/// Actions of a node that dispatches without joining (rule 42). The message says all that it takes to
/// begin the session that they are of, or to find it, so that it may come at any time and again.
public struct Visit: Sendable, Equatable {
    /// What a visit says of its session.
    public struct Session: Sendable, Hashable {
        /// The random number of the process: its session is found by it.
        public var nonce: Nonce
        /// The lowest `last` of the welcomes that the process got. Its session began behind that
        /// number, if it began.
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

    /// Whose actions these are.
    public var session: Session
    /// Consecutive actions.
    public var batch: Batch

    /// Makes a visit.
    public init(session: Session, batch: Batch) {
        self.session = session
        self.batch = batch
    }
}
