import ConfluxVocabulary

/// The outcome of sending a message.
public enum SendOutcome: Sendable, Hashable {
    /// The system has it, or it is in the queue. It arrives unless the connection breaks.
    case sent
    /// The peer's queue is full, or there is no connection. Nothing was queued.
    case wouldBlock
    /// A router has no connection with this routing id, and will not have one again.
    case unreachable
}

extension Bytes {
    /// `withUnsafeBytes` with a typed `throws`.
    func withRawBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { buffer throws(Failure) in
            try body(UnsafeRawBufferPointer(buffer))
        }
    }
}
