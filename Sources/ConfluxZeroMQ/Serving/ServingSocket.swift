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
    private var table: ConnectionTable
    private var events: [ZMTPDecoder.Event] = []
    /// When the last review was.
    private var now: Duration
    /// Whether a peer with this key may connect. Asked once for each connection, where connections are
    /// encrypted; see ``SocketSettings/security``.
    public var isAuthorized: (CurvePublicKey) -> Bool = { _ in true }

    /// How often connections are looked at that may have been silent for too long.
    private static let reviewInterval = Duration.seconds(1)

    init(
        _ context: ZeroMQContext, as type: ZMTP.SocketType, settings: SocketSettings,
        silenceMax: Duration?
    ) throws(ZeroMQError) {
        now = Moment.now.monotonic
        table = ConnectionTable(
            limits: ConnectionTable.Limits(
                type: type, key: settings.security.serverKey,
                connectionsMax: settings.connectionsMax,
                messageBytesMax: settings.messageBytesMax,
                heldBytesMax: max(settings.heldBytesMax, 2 * settings.messageBytesMax),
                handshakeMax: settings.handshakeInterval, silenceMax: silenceMax,
                queuePieces: settings.receiveQueueMessages))
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

    /// How many peers are connected, and how many may be.
    public final var connectionCount: (level: Int, most: Int) {
        (table.count, table.limits.connectionsMax)
    }

    /// The key that a peer proved to have; nil where connections are not encrypted.
    public final func key(of id: RoutingID) -> CurvePublicKey? { table.key(of: id) }

    /// Ends the connections of peers with some of the keys.
    ///
    /// - Parameter isMeant: Whether those of a key.
    /// - Throws: `closed` or `terminated`.
    public final func end(
        connectionsOf isMeant: (CurvePublicKey) -> Bool
    ) throws(ZeroMQError) {
        for id in table.connections(of: isMeant) { try end(id) }
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
        table.countPiece(of: id)
        if frame.isEmpty {
            try connectedOrEnded(id)
        } else if table.isRead(id) {
            try read(from: id)
        } else if table.mayEnd(id) {
            try endNow(id)
        }
        return true
    }

    /// What a peer said that has shaken hands: a message, a malformed one, a subscription.
    func take(_ event: ZMTPDecoder.Event, from id: RoutingID) throws(ZeroMQError) {}

    /// A connection is gone, or will be at once.
    func ended(_ id: RoutingID) {}

    /// Whether a connection may say nothing for ever.
    func mayBeSilent(_ id: RoutingID) -> Bool { false }

    /// Queues a message of one frame for a peer, in one copy.
    final func sendMessage(
        _ body: UnsafeRawBufferPointer, isCommand: Bool = false, to id: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        // What can fail comes first: once the id is queued, the bytes must follow.
        if let curve = table.curve(of: id) {
            let frame = try prepareFrame(CurveSession.frameBytes(payloadBytes: body.count))
            curve.seal(body, isCommand: isCommand, into: frame)
        } else {
            let header = ZMTP.header(bodyBytes: body.count, isCommand: isCommand)
            let frame = try prepareFrame(header.count + body.count)
            frame.copyBytes(from: header)
            UnsafeMutableRawBufferPointer(rebasing: frame[header.count...]).copyMemory(from: body)
        }
        return try sendPrepared(to: id)
    }

    /// Queues the bytes that were prepared for a peer.
    private func sendPrepared(to id: RoutingID) throws(ZeroMQError) -> SendOutcome {
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
    /// It ends at once, or when enough of it was thrown away, or at a review. libzmq stops reading a
    /// connection whose queue is full, and looks at it again only when it is told that there is room. One
    /// that breaks meanwhile, and is ended meanwhile, keeps its descriptor and its queue for ever. So a
    /// connection ends where nothing waits to be read, or just when libzmq was told; and one that breaks
    /// soon ends by itself.
    final func end(_ id: RoutingID) throws(ZeroMQError) {
        if table.isRead(id) {
            table.markEnding(id)
            ended(id)
        }
        if try !isReadable { try endNow(id) }
    }

    /// One whose peer does not read can't be ended. It is tried again, unless TCP finds that before.
    private func endNow(_ id: RoutingID) throws(ZeroMQError) {
        _ = try prepareFrame(0)
        if try sendPrepared(to: id) != .wouldBlock { forget(id) }
    }

    /// Whether connections are encrypted.
    final var isEncrypted: Bool { table.limits.key != nil }

    /// What seals what is sent to a peer.
    final func curve(of id: RoutingID) -> CurveSession? { table.curve(of: id) }

    /// Whether nothing of a connection counts any more.
    final func hasEnded(_ id: RoutingID) -> Bool { !table.isRead(id) }

    /// Counts a message that nobody can read, and ends a connection that has sent too many.
    final func countRefusal(of id: RoutingID) throws(ZeroMQError) {
        if table.refuse(id) { try end(id) }
    }

    private func forget(_ id: RoutingID) {
        guard table.contains(id) else { return }
        let isTold = !table.isRead(id)
        table.remove(id)
        if !isTold { ended(id) }
    }

    /// An empty piece is the first of a connection, and its last.
    private func connectedOrEnded(_ id: RoutingID) throws(ZeroMQError) {
        if table.contains(id) {
            forget(id)
        } else if table.add(id, at: now) {
            try say(ZMTP.greeting(table.limits.key == nil ? .null : .curve), to: id)
        } else {
            try end(id)
        }
    }

    private func read(from id: RoutingID) throws(ZeroMQError) {
        events.removeAll(keepingCapacity: true)
        var fault: ZMTPFault?
        do throws(ZMTPFault) {
            try table.read(frame, from: id, at: now, into: &events)
        } catch {
            fault = error
        }
        for event in events {
            switch event {
            case .answer(let bytes): try say(bytes, to: id)
            case .identified(let key): try admit(id, key)
            case .ping(let context):
                _ = try ZMTP.pong(context)[...].withRawBytes { body throws(ZeroMQError) in
                    try sendMessage(body, isCommand: true, to: id)
                }
            case .message, .malformed, .subscription: try take(event, from: id)
            }
        }
        if let fault {
            if let says = fault.says { try say(says, to: id) }
            try end(id)
        }
        while let excess = table.excess { try end(excess) }
    }

    private func admit(_ id: RoutingID, _ key: CurvePublicKey) throws(ZeroMQError) {
        if isAuthorized(key), let answer = table.admit(id, key) {
            try say(answer, to: id)
        } else {
            try say(ZMTP.error(ZMTP.refusedStatus), to: id)
            try end(id)
        }
    }

    /// Says something of the handshake's. Who doesn't read it will not miss it.
    private func say(_ bytes: [UInt8], to id: RoutingID) throws(ZeroMQError) {
        try prepareFrame(bytes.count).copyBytes(from: bytes)
        _ = try sendPrepared(to: id)
    }
}
