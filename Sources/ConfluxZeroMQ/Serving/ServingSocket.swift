import CZeroMQ
import ConfluxVocabulary

/// The side that peers connect to: it takes bytes from libzmq (`STREAM`) and speaks ZMTP itself, so
/// that no peer can make it hold more than is stated, or end the process.
///
/// libzmq's own ROUTER and XPUB can't serve peers that nobody trusts: a peer that fills its queue,
/// sends pings and resets its connection makes libzmq abort; a message of many frames, and the
/// subscriptions of one peer, are kept without a bound.
///
/// Per connection, libzmq holds `receiveQueueMessages` pieces of up to 8 KiB of what came and
/// `sendQueueMessages` of what goes out. What is held of frames under way is bounded for all
/// connections together. It must be read all the time: see ``review(at:)``.
public class ServingSocket: ZeroMQSocket {
    private let type: ZMTP.SocketType
    private var table: ConnectionTable
    private var events: [ZMTPDecoder.Event] = []
    /// When the last review was.
    private var now: Duration

    /// How often connections are looked at that may have been silent for too long.
    private static let reviewInterval = Duration.seconds(1)

    init(
        _ context: ZeroMQContext, as type: ZMTP.SocketType, settings: SocketSettings,
        silenceMax: Duration?
    ) throws(ZeroMQError) {
        self.type = type
        now = Moment.now.monotonic
        table = ConnectionTable(
            limits: ConnectionTable.Limits(
                connectionsMax: settings.connectionsMax,
                messageBytesMax: settings.messageBytesMax,
                heldBytesMax: max(settings.heldBytesMax, 2 * settings.messageBytesMax),
                handshakeMax: settings.handshakeInterval, silenceMax: silenceMax))
        try super.init(context, type: ZMQ_STREAM, settings: settings)
    }

    /// Ends connections that have been silent for too long. Call it now and then, and at least
    /// whenever the poller has waited.
    ///
    /// - Parameter now: The time, monotonic.
    /// - Throws: `closed` or `terminated`.
    public final func review(at now: Duration) throws(ZeroMQError) {
        guard now - self.now >= Self.reviewInterval else { return }
        self.now = now
        for id in table.silent(at: now, unless: mayBeSilent) { try end(id) }
    }

    // MARK: For the sockets that are made of this one

    /// Takes the next piece of what peers sent.
    ///
    /// - Returns: Whether there was one.
    final func receivePiece() throws(ZeroMQError) -> Bool {
        guard try receiveFrame() else { return false }
        let id = RoutingID(frame)
        guard hasMoreFrames, try receiveFrame() else { return true }
        guard let id else { return true }
        if frame.isEmpty {
            try connectedOrEnded(id)
        } else {
            try read(from: id)
        }
        return true
    }

    /// What a peer said that has shaken hands: a message, a malformed one, a subscription.
    func take(_ event: ZMTPDecoder.Event, from id: RoutingID) throws(ZeroMQError) {}

    /// A connection is gone, or will be at once.
    func ended(_ id: RoutingID) {}

    /// Whether a connection may say nothing for ever.
    func mayBeSilent(_ id: RoutingID) -> Bool { false }

    /// Queues bytes for a peer, made of two pieces, in one copy.
    final func sendPieces(
        _ head: UnsafeRawBufferPointer, _ tail: UnsafeRawBufferPointer, to id: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        // What can fail comes first: once the id is queued, the bytes must follow.
        try prepareFrame(head, tail)
        let outcome: SendOutcome
        do {
            outcome = try address(id)
        } catch {
            discardFrame()
            throw error
        }
        guard outcome == .sent else {
            discardFrame()
            return outcome
        }
        return try sendFrame()
    }

    /// Queues a message for a peer, unless its queue is full, and lets go of it.
    final func send(
        _ message: UnsafeMutablePointer<zmq_msg_t>, to id: RoutingID
    ) throws(ZeroMQError) {
        defer { zmq_msg_close(message) }
        guard try address(id) == .sent else { return }
        let raw = try open()
        while zmq_msg_send(message, raw, ZMQ_DONTWAIT) < 0 {
            let number = zmq_errno()
            guard number == EINTR else { throw .system(number, "Sending") }
        }
    }

    /// Queues the id of the peer that the next frame goes to.
    ///
    /// - Returns: `sent` if the frame must follow.
    private func address(_ id: RoutingID) throws(ZeroMQError) -> SendOutcome {
        let raw = try open()
        while true {
            let number = id.withBytes { bytes in
                zmq_send(raw, bytes.baseAddress, bytes.count, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0
                    ? 0 : zmq_errno()
            }
            switch number {
            case 0: return .sent
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            case EHOSTUNREACH:
                forget(id)
                return .unreachable
            default: throw .system(number, "Sending")
            }
        }
    }

    /// Ends a connection. What waits in both directions is lost.
    ///
    /// One whose queue is full can't be ended at once: it is tried again at each review, unless TCP
    /// finds before that nobody reads. What it sends meanwhile is thrown away.
    final func end(_ id: RoutingID) throws(ZeroMQError) {
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        if try sendPieces(nothing, nothing, to: id) == .wouldBlock {
            table.markEnding(id)
            ended(id)
        } else {
            forget(id)
        }
    }

    /// Whether nothing of a connection counts any more.
    final func hasEnded(_ id: RoutingID) -> Bool { !table.isRead(id) }

    /// Counts a message that nobody can read, and ends a connection that has sent too many.
    final func countRefusal(of id: RoutingID) throws(ZeroMQError) {
        if table.refuse(id) { try end(id) }
    }

    private func forget(_ id: RoutingID) {
        guard table.contains(id) else { return }
        table.remove(id)
        ended(id)
    }

    /// An empty piece is the first of a connection, and its last.
    private func connectedOrEnded(_ id: RoutingID) throws(ZeroMQError) {
        if table.contains(id) {
            forget(id)
        } else if table.add(id, at: now) {
            try say(ZMTP.greeting, to: id)
        } else {
            try end(id)
        }
    }

    private func read(from id: RoutingID) throws(ZeroMQError) {
        events.removeAll(keepingCapacity: true)
        var isFaulty = false
        do throws(ZMTPFault) {
            try table.read(frame, from: id, at: now, into: &events)
        } catch {
            isFaulty = true
        }
        for event in events {
            switch event {
            case .greeted: try say(ZMTP.ready(type), to: id)
            case .ready(let socketType): isFaulty = isFaulty || !type.peers.contains(socketType)
            case .ping(let context): try say(ZMTP.pong(context), to: id)
            case .message, .malformed, .subscription: try take(event, from: id)
            }
        }
        if isFaulty { try end(id) }
        while let excess = table.excess { try end(excess) }
    }

    /// Says something of ZMTP's. Who doesn't read it will not miss it.
    private func say(_ bytes: [UInt8], to id: RoutingID) throws(ZeroMQError) {
        _ = try bytes[...].withRawBytes { bytes throws(ZeroMQError) in
            try sendPieces(bytes, UnsafeRawBufferPointer(start: nil, count: 0), to: id)
        }
    }
}
