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

    deinit {
        budget.count(-bytes.count)
        bytes.deallocate()
    }

    var byteCount: Int { bytes.count }

    /// Makes a message of it that counts in the connection's queue until libzmq has sent it or thrown
    /// it away. False where there is no memory.
    func fill(_ message: UnsafeMutablePointer<zmq_msg_t>, for queue: OutboundQueue) -> Bool {
        let delivery = Unmanaged.passRetained(Delivery(of: self, in: queue))
        let isMade = zmq_msg_init_data(
            message, bytes.baseAddress, bytes.count,
            // Called by libzmq's own thread.
            { _, delivery in
                if let delivery { Unmanaged<Delivery>.fromOpaque(delivery).release() }
            }, delivery.toOpaque())
        if isMade != 0 {
            delivery.release()
            zmq_msg_init(message)
        }
        return isMade == 0
    }
}

/// A frame in the queue of one connection, for as long as libzmq holds it.
private final class Delivery: Sendable {
    private let frame: SharedFrame
    private let queue: OutboundQueue

    init(of frame: SharedFrame, in queue: OutboundQueue) {
        self.frame = frame
        self.queue = queue
        queue.count(frame.byteCount)
    }

    deinit { queue.uncount(frame.byteCount) }
}
