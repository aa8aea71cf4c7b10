import CZeroMQ
import ConfluxVocabulary
import Synchronization

/// A frame that the queues of several subscribers share. It lives until the last of them lets go.
final class SharedFrame: Sendable {
    // No thread writes it once it is made, and the last one to let go frees it.
    private nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer

    /// A message of one frame.
    init(_ message: Bytes) {
        let header = ZMTP.header(bodyBytes: message.count)
        bytes = .allocate(byteCount: header.count + message.count, alignment: 16)
        bytes.copyBytes(from: header)
        UnsafeMutableRawBufferPointer(rebasing: bytes[header.count...]).copyBytes(from: message)
    }

    /// The same for one peer alone.
    init(_ message: Bytes, sealedBy curve: CurveSession) {
        bytes = .allocate(
            byteCount: CurveSession.frameBytes(payloadBytes: message.count), alignment: 16)
        message.withUnsafeBytes { curve.seal($0, into: bytes) }
    }

    deinit { bytes.deallocate() }

    var byteCount: Int { bytes.count }

    /// Makes a message of it that counts in the subscriber's queue until libzmq has sent it or thrown
    /// it away. False where there is no memory.
    func fill(_ message: UnsafeMutablePointer<zmq_msg_t>, for queue: SubscriberQueue) -> Bool {
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

/// What libzmq holds for one subscriber.
final class SubscriberQueue: Sendable {
    /// The most bytes that wait for one subscriber. *At the bound* it loses what is published, and
    /// fetches it.
    static let bytesMax = 16 << 20
    /// What a message costs besides its bytes.
    static let messageCost = 256
    /// More messages than these bytes can be.
    static let messagesMax = bytesMax / messageCost + 1

    private let byteCount = Atomic<Int>(0)

    var hasRoom: Bool { byteCount.load(ordering: .relaxed) < Self.bytesMax }

    fileprivate func count(_ bytes: Int) { byteCount.add(bytes, ordering: .relaxed) }
}

/// A frame in the queue of one subscriber, for as long as libzmq holds it.
private final class Delivery: Sendable {
    private let frame: SharedFrame
    private let queue: SubscriberQueue

    init(of frame: SharedFrame, in queue: SubscriberQueue) {
        self.frame = frame
        self.queue = queue
        queue.count(frame.byteCount + SubscriberQueue.messageCost)
    }

    deinit { queue.count(-(frame.byteCount + SubscriberQueue.messageCost)) }
}
