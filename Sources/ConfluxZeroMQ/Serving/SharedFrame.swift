import CZeroMQ
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
            let header = ZMTP.header(bodyBytes: message.count, isCommand: isCommand)
            self.init(byteCount: header.count + message.count, in: budget)
            bytes.copyBytes(from: header)
            UnsafeMutableRawBufferPointer(rebasing: bytes[header.count...])
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
        conflux_send(descriptor, bytes.baseAddress! + start, bytes.count - start)
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
