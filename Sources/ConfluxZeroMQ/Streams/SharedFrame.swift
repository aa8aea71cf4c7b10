import CSockets
import ConfluxVocabulary
import Synchronization

/// A frame that the queues of several connections share. It lives until the last of them lets go, and
/// counts in the budget until then.
final class SharedFrame: Sendable {
    // No thread writes it once it is made, and the last one to let go frees it.
    private nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer
    private let budget: OutboundQueue.Budget

    private init(byteCount: Int, in budget: OutboundQueue.Budget) {
        bytes = .allocate(byteCount: byteCount, alignment: 16)
        self.budget = budget
        budget.count(byteCount)
    }

    /// A message of one frame, sealed for one peer where there is a session with it.
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

    /// Bytes of the handshake, as they are.
    convenience init(_ handshake: [UInt8], in budget: OutboundQueue.Budget) {
        self.init(byteCount: handshake.count, in: budget)
        bytes.copyBytes(from: handshake)
    }

    deinit {
        budget.count(-bytes.count)
        bytes.deallocate()
    }

    var byteCount: Int { bytes.count }

    /// Writes it to a connection, from one of its bytes on.
    ///
    /// - Returns: How many bytes were written; -1 with `errno` set.
    func write(to descriptor: Int32, from start: Int) -> Int {
        conflux_send(descriptor, bytes.baseAddress! + start, bytes.count - start, nil, 0)
    }
}

/// A frame that waits for one connection, and counts in its queue, if it has one.
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

/// A frame that is about to be sent, to one connection or to several. It is copied once somebody does not
/// take all of it at once, or where it is sealed, and not before.
struct OutgoingFrame {
    private enum Content {
        /// A message, which is the caller's for as long as it sends.
        case message(ZMTP.Header, UnsafeRawBufferPointer)
        case copied(SharedFrame)
    }

    private var content: Content
    private let budget: OutboundQueue.Budget

    /// A message of one frame.
    ///
    /// - Parameters:
    ///   - message: Its bytes, valid for as long as this is used.
    ///   - isCommand: Whether it is a command of ZMTP's.
    ///   - curve: What seals it; nil if nothing is encrypted.
    ///   - budget: Where its memory counts.
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

    /// Bytes of the handshake, as they are.
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

    /// Writes it to a connection.
    ///
    /// - Returns: How many bytes were written; -1 with `errno` set.
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

    /// What can wait.
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
