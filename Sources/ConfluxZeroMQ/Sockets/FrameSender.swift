import ConfluxVocabulary

/// A socket that sends messages of one frame to whoever it is connected with.
public protocol FrameSender: ZeroMQSocket {}

extension FrameSender {
    /// Queues one frame, made of two pieces, in one copy.
    ///
    /// - Parameters:
    ///   - head: The first piece.
    ///   - tail: The second piece.
    /// - Returns: What became of it; a full queue is no error.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(
        _ head: UnsafeRawBufferPointer, _ tail: UnsafeRawBufferPointer
    ) throws(ZeroMQError) -> SendOutcome {
        let frame = try prepareFrame(head.count + tail.count)
        frame.copyMemory(from: head)
        UnsafeMutableRawBufferPointer(rebasing: frame[head.count...]).copyMemory(from: tail)
        return try sendFrame()
    }

    /// Queues one frame, in one copy.
    ///
    /// - Parameter frame: The whole frame.
    /// - Returns: What became of it; a full queue is no error.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(_ frame: UnsafeRawBufferPointer) throws(ZeroMQError) -> SendOutcome {
        try send(frame, UnsafeRawBufferPointer(start: nil, count: 0))
    }

    /// Queues one frame, in one copy.
    ///
    /// - Parameter frame: The whole frame.
    /// - Returns: What became of it; a full queue is no error.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(_ frame: [UInt8]) throws(ZeroMQError) -> SendOutcome {
        try send(frame[...])
    }

    /// Queues one frame, in one copy.
    ///
    /// - Parameter frame: The whole frame.
    /// - Returns: What became of it; a full queue is no error.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(_ frame: Bytes) throws(ZeroMQError) -> SendOutcome {
        try frame.withRawBytes { bytes throws(ZeroMQError) in try send(bytes) }
    }

    /// Queues one frame, made of two pieces, in one copy.
    ///
    /// - Parameters:
    ///   - head: The first piece.
    ///   - tail: The second piece.
    /// - Returns: What became of it; a full queue is no error.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(_ head: Bytes, _ tail: Bytes) throws(ZeroMQError) -> SendOutcome {
        try head.withRawBytes { head throws(ZeroMQError) in
            try tail.withRawBytes { tail throws(ZeroMQError) in try send(head, tail) }
        }
    }
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
