import ConfluxVocabulary

/// What became of a message that was to be sent.
public enum SendOutcome: Sendable, Hashable {
    /// The system has it, or it is in the queue. It arrives unless the connection breaks.
    case sent
    /// The queue for that peer is full, or no connection stands. Nothing was queued.
    case wouldBlock
    /// A router has no connection with this routing id; there will be none again.
    case unreachable
}

extension Bytes {
    /// `withUnsafeBytes`, keeping the type of what `body` throws.
    func withRawBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { buffer throws(Failure) in
            try body(UnsafeRawBufferPointer(buffer))
        }
    }
}
