import CZeroMQ
import ConfluxVocabulary

/// The name by which a router knows one connection.
///
/// A connection that breaks and comes back has another one. libzmq makes them of five bytes; a
/// peer may choose its own, of which those of up to eight bytes are accepted here, so that the
/// value is small and needs no memory of its own.
public struct RoutingID: Hashable, Sendable, CustomStringConvertible {
    /// How many bytes it may have.
    static let bytesMax = 8

    private let packed: UInt64
    private let count: UInt8

    init?(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty, bytes.count <= Self.bytesMax else { return nil }
        var packed: UInt64 = 0
        for (index, byte) in bytes.enumerated() { packed |= UInt64(byte) << (8 * index) }
        self.packed = packed
        count = UInt8(bytes.count)
    }

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: packed.littleEndian) { bytes in
            body(UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(count))))
        }
    }

    /// Two hexadecimal digits a byte.
    public var description: String {
        withBytes { bytes in
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
    }
}

/// What a router received.
public enum RouterInput: Sendable, Hashable {
    /// A message of one frame.
    case message(from: RoutingID, body: Bytes)
    /// A message of this many frames, or of none, which is nothing that is spoken here. It was
    /// thrown away.
    case malformed(from: RoutingID, frames: Int)
    /// A message of a peer that calls itself something of this many bytes, more than a routing
    /// id holds here. It was thrown away, and the peer cannot be answered.
    case overlongRoutingID(bytes: Int)
}

/// The socket that serves many peers, each by its routing id (`ROUTER`).
///
/// Sending to a peer that is gone, or whose queue is full, is reported and disturbs nobody else.
public final class RouterSocket: ZeroMQSocket {
    /// Opens a router.
    ///
    /// - Parameters:
    ///   - context: Where it lives.
    ///   - settings: Limits and times.
    /// - Throws: `invalidSetting`, `tooManyOpen`, `terminated`.
    public init(
        _ context: ZeroMQContext, settings: SocketSettings = SocketSettings()
    ) throws(ZeroMQError) {
        try super.init(context, type: ZMQ_ROUTER, settings: settings)
        try set(ZMQ_ROUTER_MANDATORY, Int32(1))
        try set(ZMQ_ROUTER_HANDOVER, Int32(settings.hasRouterHandover ? 1 : 0))
    }

    /// Takes the next message, if one waits.
    ///
    /// - Returns: nil when nothing waits.
    /// - Throws: `closed` or `terminated`.
    public func receive() throws(ZeroMQError) -> RouterInput? {
        guard try receiveFrame() else { return nil }
        guard let sender = RoutingID(frame) else {
            let bytes = frame.count
            malformedCount += 1
            _ = try skipMessage()
            return .overlongRoutingID(bytes: bytes)
        }
        guard hasMoreFrames, try receiveFrame() else {
            malformedCount += 1
            return .malformed(from: sender, frames: 0)
        }
        guard !hasMoreFrames else {
            malformedCount += 1
            return .malformed(from: sender, frames: try skipMessage() + 1)
        }
        return .message(from: sender, body: takeFrame())
    }

    /// Queues one frame, made of two pieces, for a peer, in one copy.
    ///
    /// - Parameters:
    ///   - head: The first piece.
    ///   - tail: The second piece.
    ///   - peer: Whom to send it to.
    /// - Returns: What became of it; neither a full queue nor a peer that is gone is an error.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(
        _ head: UnsafeRawBufferPointer, _ tail: UnsafeRawBufferPointer, to peer: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        let raw = try open()
        // What can fail comes first: once the id is queued, the frame must follow.
        try prepareFrame(head, tail)
        while true {
            let number = peer.withBytes { id in
                zmq_send(raw, id.baseAddress, id.count, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0
                    ? 0 : zmq_errno()
            }
            switch number {
            case 0: return try sendFrame()
            case EINTR: continue
            case EAGAIN:
                discardFrame()
                return .wouldBlock
            case EHOSTUNREACH:
                discardFrame()
                return .unreachable
            default:
                discardFrame()
                throw .system(number, "Sending")
            }
        }
    }

    /// Queues one frame for a peer, in one copy.
    ///
    /// - Parameters:
    ///   - frame: The whole frame.
    ///   - peer: Whom to send it to.
    /// - Returns: What became of it; neither a full queue nor a peer that is gone is an error.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(
        _ frame: UnsafeRawBufferPointer, to peer: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        try send(frame, UnsafeRawBufferPointer(start: nil, count: 0), to: peer)
    }

    /// Queues one frame for a peer, in one copy.
    ///
    /// - Parameters:
    ///   - frame: The whole frame.
    ///   - peer: Whom to send it to.
    /// - Returns: What became of it; neither a full queue nor a peer that is gone is an error.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(_ frame: [UInt8], to peer: RoutingID) throws(ZeroMQError) -> SendOutcome {
        try send(frame[...], to: peer)
    }

    /// Queues one frame for a peer, in one copy.
    ///
    /// - Parameters:
    ///   - frame: The whole frame.
    ///   - peer: Whom to send it to.
    /// - Returns: What became of it; neither a full queue nor a peer that is gone is an error.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(_ frame: Bytes, to peer: RoutingID) throws(ZeroMQError) -> SendOutcome {
        try frame.withRawBytes { bytes throws(ZeroMQError) in try send(bytes, to: peer) }
    }

    /// Queues one frame, made of two pieces, for a peer, in one copy.
    ///
    /// - Parameters:
    ///   - head: The first piece.
    ///   - tail: The second piece.
    ///   - peer: Whom to send it to.
    /// - Returns: What became of it; neither a full queue nor a peer that is gone is an error.
    /// - Throws: `outOfMemory`, `closed` or `terminated`.
    public func send(
        _ head: Bytes, _ tail: Bytes, to peer: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        try head.withRawBytes { head throws(ZeroMQError) in
            try tail.withRawBytes { tail throws(ZeroMQError) in
                try send(head, tail, to: peer)
            }
        }
    }
}
