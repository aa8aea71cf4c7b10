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
/// `sendQueueMessages` of what goes out. What is held of frames under way, and of what goes out, is
/// bounded in bytes for all connections together. It must be read all the time: see ``review(at:)``.
public class ServingSocket: ZeroMQSocket {
    private var table: ConnectionTable
    private var events: [ZMTPDecoder.Event] = []
    /// When the last review was.
    private var now: Duration
    /// Those that end once nothing waits to be read.
    private var dueEnds: [RoutingID] = []
    private let message = UnsafeMutablePointer<zmq_msg_t>.allocate(capacity: 1)
    /// How many connections the peers with a key may have; nil where the key may not connect. Asked once
    /// for each connection, where connections are encrypted; see ``SocketSettings/security``.
    public var connectionsMax: (CurvePublicKey) -> Int? = { _ in .max }

    /// How often connections are looked at that may have been silent for too long.
    private static let reviewInterval = Duration.seconds(1)

    init(
        _ context: ZeroMQContext, as type: ZMTP.SocketType, settings: SocketSettings,
        silenceMax: Duration?, outboundBytesMax: OutboundQueue.Limits
    ) throws(ZeroMQError) {
        now = Moment.now.monotonic
        table = ConnectionTable(
            limits: ConnectionTable.Limits(
                type: type, key: settings.security.serverKey,
                connectionsMax: settings.connectionsMax, handshakesMax: settings.handshakesMax,
                messageBytesMax: settings.messageBytesMax,
                heldBytesMax: max(settings.heldBytesMax, 2 * settings.messageBytesMax),
                handshakeMax: settings.handshakeInterval, silenceMax: silenceMax,
                outboundBytesMax: outboundBytesMax, queuePieces: settings.receiveQueueMessages))
        try super.init(context, type: ZMQ_STREAM, settings: settings)
    }

    deinit { message.deallocate() }

    /// Ends connections that have been silent, or have not said who they are, for too long. Call it now and then, and at least
    /// whenever the poller has waited.
    ///
    /// - Parameter now: The time, monotonic.
    /// - Throws: `closed` or `terminated`.
    public final func review(at now: Duration) throws(ZeroMQError) {
        guard now - self.now >= Self.reviewInterval else { return }
        self.now = now
        for id in table.overdue(at: now) { try end(id) }
    }

    /// How full is what all peers share.
    public final var levels: ServingLevels {
        ServingLevels(
            connections: (table.establishedCount, table.limits.connectionsMax),
            handshakes: (table.handshakeCount, table.limits.handshakesMax),
            queueBytes: (table.budget.heldBytes, table.budget.bytesMax))
    }

    /// The key that a peer proved to have; nil where connections are not encrypted.
    public final func key(of id: RoutingID) -> CurvePublicKey? { table.key(of: id) }

    /// Ends the connections of peers with some of the keys.
    ///
    /// What waits to be sent to a connection that ends at once may be lost.
    ///
    /// - Parameters:
    ///   - delay: How long they are served until then; ``review(at:)`` ends them. nil: they end at once.
    ///   - isMeant: Whether those of a key.
    /// - Throws: `closed` or `terminated`.
    public final func end(
        after delay: Duration? = nil, connectionsOf isMeant: (CurvePublicKey) -> Bool
    ) throws(ZeroMQError) {
        for id in table.connections(of: isMeant) {
            if let delay {
                table.end(id, at: Moment.now.monotonic + delay)
            } else {
                try end(id)
            }
        }
    }

    // MARK: For the sockets that are made of this one

    /// Takes the next piece of what peers sent.
    ///
    /// - Returns: Whether there was one.
    final func receivePiece() throws(ZeroMQError) -> Bool {
        guard try receiveFrame() else {
            while let id = dueEnds.popLast() { try endNow(id) }
            return false
        }
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

    /// What waits to be sent to all peers.
    final var budget: OutboundQueue.Budget { table.budget }

    /// What waits to be sent to a peer.
    final func queue(of id: RoutingID) -> OutboundQueue? { table.queue(of: id) }

    /// A peer has said all that it must. Its connection ends where there is no room for it.
    ///
    /// - Returns: Whether there is.
    final func establish(_ id: RoutingID) throws(ZeroMQError) -> Bool {
        if table.establish(id) { return true }
        try end(id)
        return false
    }

    /// A peer has taken back what it must say.
    final func reopen(_ id: RoutingID) { table.reopen(id, at: now) }

    /// Queues a message of one frame for a peer, in one copy, unless its queue is full.
    final func sendMessage(
        _ body: UnsafeRawBufferPointer, isCommand: Bool = false, to id: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        guard let queue = table.queue(of: id) else { return .unreachable }
        guard queue.hasRoom else { return .wouldBlock }
        return try send(
            SharedFrame(body, isCommand: isCommand, sealedBy: table.curve(of: id), in: budget),
            queue, to: id)
    }

    /// Queues a frame for a peer, which counts in the peer's queue.
    final func send(
        _ frame: SharedFrame, _ queue: OutboundQueue, to id: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        // What can fail comes first: once the id is queued, the frame must follow.
        guard frame.fill(message, for: queue) else { throw .system(ENOMEM, "Sending") }
        defer { zmq_msg_close(message) }
        let outcome = try address(id)
        guard outcome == .sent else { return outcome }
        let raw = try open()
        while zmq_msg_send(message, raw, ZMQ_DONTWAIT) < 0 {
            let number = zmq_errno()
            guard number == EINTR else { throw .system(number, "Sending") }
        }
        return .sent
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
    /// It ends at once, or when nothing waits to be read, or when enough of it was thrown away. libzmq stops reading a
    /// connection whose queue is full, and looks at it again only when it is told that there is room. One
    /// that breaks meanwhile, and is ended meanwhile, keeps its descriptor and its queue for ever. So a
    /// connection ends where nothing waits to be read, or just when libzmq was told; and one that breaks
    /// soon ends by itself.
    final func end(_ id: RoutingID) throws(ZeroMQError) {
        let isFirst = table.isRead(id)
        if isFirst {
            table.markEnding(id)
            ended(id)
        }
        if try !isReadable {
            try endNow(id)
        } else if isFirst {
            dueEnds.append(id)
        }
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
        } else {
            table.add(id, at: now)
            try say(ZMTP.greeting(table.limits.key == nil ? .null : .curve), to: id)
            while let surplus = table.surplus { try end(surplus) }
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
        let most = connectionsMax(key)
        if let most, let answer = table.admit(id, key, most: most) {
            try say(answer, to: id)
        } else {
            try say(ZMTP.error(most == nil ? ZMTP.refusedStatus : ZMTP.fullStatus), to: id)
            try end(id)
        }
    }

    /// Says something of the handshake's. Who doesn't read it will not miss it.
    private func say(_ bytes: [UInt8], to id: RoutingID) throws(ZeroMQError) {
        try prepareFrame(bytes.count).copyBytes(from: bytes)
        _ = try sendPrepared(to: id)
    }
}

/// How full is what all peers of a serving socket share, and how full it may be.
public struct ServingLevels: Sendable {
    /// Connections that are established.
    public let connections: (level: Int, most: Int)
    /// Connections whose peers have not said yet what they are, and who.
    public let handshakes: (level: Int, most: Int)
    /// Bytes that wait to be sent.
    public let queueBytes: (level: Int, most: Int)
}
