import CSockets

/// A frame that the queues of several connections share. It lives until the last of them releases it, and counts in
/// the budget until then.
final class SharedFrame: Sendable {
    // No thread writes to it after `init`, and `deinit` frees it.
    private nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer
    private let budget: OutboundQueue.Budget

    private init(byteCount: Int, in budget: OutboundQueue.Budget) {
        bytes = .allocate(byteCount: byteCount, alignment: 16)
        self.budget = budget
        budget.count(byteCount)
    }

    /// A message of one frame. If there is a session, it is sealed for that session's peer.
    convenience init(
        _ message: UnsafeRawBufferPointer, isCommand: Bool = false, sealedBy curve: CurveSession?,
        in budget: OutboundQueue.Budget
    ) {
        if let curve {
            self.init(
                byteCount: CurveSession.frameBytes(payloadBytes: message.count), in: budget)
            curve.seal(message, isCommand: isCommand, into: bytes)
        } else {
            let header = ZMTP.Header(bodyBytes: message.count, isCommand: isCommand)
            self.init(byteCount: header.byteCount + message.count, in: budget)
            header.withBytes { bytes.copyMemory(from: $0) }
            UnsafeMutableRawBufferPointer(rebasing: bytes[header.byteCount...])
                .copyMemory(from: message)
        }
    }

    /// Bytes of the handshake, sent as they are.
    convenience init(_ handshake: [UInt8], in budget: OutboundQueue.Budget) {
        self.init(byteCount: handshake.count, in: budget)
        bytes.copyBytes(from: handshake)
    }

    deinit {
        budget.count(-bytes.count)
        bytes.deallocate()
    }

    var byteCount: Int { bytes.count }

    /// Writes the frame to a connection, beginning at one of its bytes.
    ///
    /// - Returns: How many bytes were written; -1 on failure, with `errno` set.
    func write(to descriptor: Int32, from start: Int) -> Int {
        conflux_send(descriptor, bytes.baseAddress! + start, bytes.count - start, nil, 0)
    }
}

/// A frame that is queued for one connection, and counts in that connection's queue if it has one.
final class Delivery: Sendable {
    let frame: SharedFrame
    private let queue: OutboundQueue?

    init(of frame: SharedFrame, in queue: OutboundQueue?) {
        self.frame = frame
        self.queue = queue
        queue?.count(frame.byteCount)
    }

    deinit { queue?.uncount(frame.byteCount) }
}

/// A frame that is about to be sent, to one connection or to several. It is copied only if it is sealed, or when a
/// connection does not take all of it at once.
struct OutgoingFrame {
    private enum Content {
        /// A message that belongs to the caller, which keeps it valid while it sends.
        case message(ZMTP.Header, UnsafeRawBufferPointer)
        case copied(SharedFrame)
    }

    private var content: Content
    private let budget: OutboundQueue.Budget

    /// A message of one frame.
    ///
    /// - Parameters:
    ///   - message: Its bytes, valid for as long as this is used.
    ///   - isCommand: Whether it is a ZMTP command.
    ///   - curve: The session that seals it; nil if connections are not encrypted.
    ///   - budget: The budget in which a copy counts.
    init(
        _ message: UnsafeRawBufferPointer, isCommand: Bool = false, sealedBy curve: CurveSession?,
        in budget: OutboundQueue.Budget
    ) {
        self.budget = budget
        content =
            if let curve {
                .copied(
                    SharedFrame(message, isCommand: isCommand, sealedBy: curve, in: budget))
            } else {
                .message(ZMTP.Header(bodyBytes: message.count, isCommand: isCommand), message)
            }
    }

    /// Bytes of the handshake, sent as they are.
    init(handshake: [UInt8], in budget: OutboundQueue.Budget) {
        self.budget = budget
        content = .copied(SharedFrame(handshake, in: budget))
    }

    var byteCount: Int {
        switch content {
        case .message(let header, let message): header.byteCount + message.count
        case .copied(let frame): frame.byteCount
        }
    }

    /// Writes as much of the frame to a connection as it takes.
    ///
    /// - Returns: How many bytes were written; -1 on failure, with `errno` set.
    func write(to descriptor: Int32) -> Int {
        switch content {
        case .message(let header, let message):
            header.withBytes {
                conflux_send(
                    descriptor, $0.baseAddress, $0.count, message.baseAddress, message.count)
            }
        case .copied(let frame): frame.write(to: descriptor, from: 0)
        }
    }

    /// A copy that can be queued. The first call makes it.
    mutating func copied() -> SharedFrame {
        switch content {
        case .copied(let frame): return frame
        case .message(let header, let message):
            let frame = SharedFrame(
                message, isCommand: header.isCommand, sealedBy: nil, in: budget)
            content = .copied(frame)
            return frame
        }
    }
}
