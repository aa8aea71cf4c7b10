import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The side that peers connect to. It uses sockets of the system, and speaks ZMTP itself, so that no peer can make it
/// hold more than its bounds, or crash the process.
///
/// libzmq's own ROUTER and XPUB can't serve untrusted peers. A peer that fills its queue, sends
/// pings and resets its connection makes libzmq abort. And libzmq keeps a message of many frames,
/// and the subscriptions of one peer, without a bound.
///
/// The bytes of incomplete frames and of queued messages are bounded for all connections together. The owner must
/// keep reading from the socket: see ``review(at:)``. No call blocks, except closing while messages are queued.
public class ServingSocket: PolledSocket {
    /// nil once the socket is closed.
    private var server: StreamServer?
    /// Where peers connect. What they do there costs the owner nothing.
    private let door: Door
    private var table: ConnectionTable
    private var events: [ZMTPDecoder.Event] = []
    /// The time of the last review.
    private var now: Duration
    /// How many connections the peers with a key may have; nil if the key may not connect. If connections are
    /// encrypted, it is called for each connection, on the thread that makes the handshakes and again on the owner's;
    /// see ``SocketSettings/security``.
    public var connectionsMax: @Sendable (CurvePublicKey) -> Int? = { _ in .max } {
        didSet { door.setConnectionsMax(connectionsMax) }
    }

    /// How often connections are checked for silence.
    private static let reviewInterval = Duration.seconds(1)

    init(
        as type: ZMTP.SocketType, settings: SocketSettings,
        silenceMax: Duration?, outboundBytesMax: OutboundQueue.Limits
    ) throws(ZeroMQError) {
        try settings.validate()
        now = Moment.now.monotonic
        table = ConnectionTable(
            limits: ConnectionTable.Limits(
                type: type, key: settings.security.serverKey,
                connectionsMax: settings.connectionsMax, handshakesMax: settings.handshakesMax,
                messageBytesMax: settings.messageBytesMax,
                heldBytesMax: max(settings.heldBytesMax, 2 * settings.messageBytesMax),
                handshakeMax: settings.handshakeInterval, silenceMax: silenceMax,
                outboundBytesMax: outboundBytesMax))
        door = try Door(type, settings)
        server = try StreamServer(settings, bell: door.bell)
        super.init()
    }

    /// Whether `close()` was called.
    public final override var isClosed: Bool { server == nil }

    override var descriptor: Int32 { server?.readiness ?? -1 }

    override var isReady: Bool { hasTakenInput || server?.isReady == true }

    /// Whether there is input that was read from the system and not received yet.
    var hasTakenInput: Bool { false }

    final func open() throws(ZeroMQError) -> StreamServer {
        guard let server else { throw .socketClosed }
        return server
    }

    /// Begins to accept connections at an endpoint.
    ///
    /// - Parameter endpoint: The endpoint. With port 0 the system chooses a port. `localhost` is
    ///   127.0.0.1; other hosts are `*` or an IP address of this machine.
    /// - Returns: The real endpoint, with the port that was chosen.
    /// - Throws: `addressInUse`, `addressNotAvailable`, `permissionDenied` and other errors of the
    ///   system. They name the endpoint.
    @discardableResult
    public final func bind(_ endpoint: Endpoint) throws(ZeroMQError) -> Endpoint {
        _ = try open()
        return try door.bind(endpoint)
    }

    /// Accepts nothing more, sends what is queued, for as long as the linger setting allows, and ends all connections.
    /// A further call does nothing.
    public final func close() {
        door.close()
        server?.close()
        server = nil
    }

    /// Ends connections that were not established in time, or have been silent for too long. Call it regularly, at
    /// least after each wait of the poller.
    ///
    /// - Parameter now: The time, monotonic.
    /// - Throws: `closed`.
    public final func review(at now: Duration) throws(ZeroMQError) {
        guard now - self.now >= Self.reviewInterval else { return }
        self.now = now
        for id in table.overdue(at: now) { try end(id) }
    }

    /// How full the resources are that all peers share.
    public final var levels: ServingLevels {
        ServingLevels(
            connections: (table.establishedCount, table.limits.connectionsMax),
            handshakes: (table.handshakeCount + door.count, 2 * table.limits.handshakesMax),
            queueBytes: (table.budget.heldBytes, table.budget.bytesMax))
    }

    /// The key that a peer has proved to have; nil if connections are not encrypted.
    public final func key(of id: RoutingID) -> CurvePublicKey? { table.key(of: id) }

    /// Ends the connections of peers with some of the keys.
    ///
    /// What is queued for a connection that ends at once may be lost.
    ///
    /// - Parameters:
    ///   - delay: How long they are still served; then ``review(at:)`` ends them. nil ends them at once.
    ///   - isMeant: Whether to end the connections of this key.
    /// - Throws: `closed`.
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

    /// Reads the next piece of what peers sent.
    ///
    /// - Returns: Whether there was one.
    final func receivePiece() throws(ZeroMQError) -> Bool {
        switch try open().next() {
        case nil: return false
        // One at a time: peers that connect must not hold up the others.
        case .rung: if let arrival = door.takeArrival() { try arrived(arrival) }
        case .received(let id, let bytes): try read(bytes, from: id)
        case .ended(let id): forget(id)
        }
        return true
    }

    /// Takes what a peer sent after its handshake: a message, a malformed message or a
    /// subscription.
    func take(_ event: ZMTPDecoder.Event, from id: RoutingID) throws(ZeroMQError) {}

    /// Called when a connection has ended, or is about to end.
    func ended(_ id: RoutingID) {}

    /// What is queued for all peers.
    final var budget: OutboundQueue.Budget { table.budget }

    /// What is queued for a peer.
    final func queue(of id: RoutingID) -> OutboundQueue? { table.queue(of: id) }

    /// Marks a peer's connection as established, or ends it if there is no room for it.
    ///
    /// - Returns: Whether there is room.
    final func establish(_ id: RoutingID) throws(ZeroMQError) -> Bool {
        if table.establish(id) { return true }
        try end(id)
        return false
    }

    /// Marks a peer's connection as not established: the peer has ended its subscription.
    final func reopen(_ id: RoutingID) { table.reopen(id, at: now) }

    /// Sends a peer a message of one frame, or queues a copy of it, unless its queue is full.
    final func sendMessage(
        _ body: UnsafeRawBufferPointer, isCommand: Bool = false, to id: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        guard let queue = table.queue(of: id) else { return .unreachable }
        guard queue.hasRoom else { return .wouldBlock }
        var frame = OutgoingFrame(
            body, isCommand: isCommand, sealedBy: table.curve(of: id), in: budget)
        return try send(&frame, queue, to: id)
    }

    /// Sends a frame to a peer, or queues it. A queued frame counts in the peer's queue.
    final func send(
        _ frame: inout OutgoingFrame, _ queue: OutboundQueue?, to id: RoutingID
    ) throws(ZeroMQError) -> SendOutcome {
        try open().send(&frame, counting: queue, to: id)
    }

    /// Ends a connection. What is under way in both directions is lost.
    final func end(_ id: RoutingID) throws(ZeroMQError) {
        try open().close(id)
        forget(id)
    }

    /// Whether connections are encrypted.
    final var isEncrypted: Bool { table.limits.key != nil }

    /// The session that seals messages to a peer.
    final func curve(of id: RoutingID) -> CurveSession? { table.curve(of: id) }

    /// Whether a connection has ended.
    final func hasEnded(_ id: RoutingID) -> Bool { !table.contains(id) }

    /// Counts an unreadable message, and ends a connection that has sent too many of them.
    final func countRefusal(of id: RoutingID) throws(ZeroMQError) {
        if table.refuse(id) { try end(id) }
    }

    private func forget(_ id: RoutingID) {
        guard table.contains(id) else { return }
        table.remove(id)
        ended(id)
    }

    private func arrived(_ arrival: Door.Arrival) throws(ZeroMQError) {
        guard let id = try open().adopt(arrival.descriptor) else { return }
        table.add(id, arrival.decoder, at: now)
        if let key = arrival.key {
            try admit(id, key)
        } else if !table.limits.type.awaitsSubscription {
            _ = try establish(id)
        }
        for event in arrival.events where table.contains(id) { try handle(event, from: id) }
        while let surplus = table.surplus { try end(surplus) }
    }

    private func read(
        _ bytes: UnsafeRawBufferPointer, from id: RoutingID
    ) throws(ZeroMQError) {
        events.removeAll(keepingCapacity: true)
        var fault: ZMTPFault?
        do throws(ZMTPFault) {
            try table.read(bytes, from: id, at: now, into: &events)
        } catch {
            fault = error
        }
        try open().took(messages: events.count, from: id)
        var ping: ZMTPDecoder.Event?
        for event in events {
            if case .ping = event { ping = event } else { try handle(event, from: id) }
        }
        // One answer is enough, however many pings arrived together.
        if let ping { try handle(ping, from: id) }
        if fault != nil { try end(id) }
        while let excess = table.excess { try end(excess) }
    }

    private func handle(_ event: ZMTPDecoder.Event, from id: RoutingID) throws(ZeroMQError) {
        switch event {
        // These belong to the handshake, which is over.
        case .answer, .identified: break
        case .ping(let context):
            _ = try ZMTP.pong(context)[...].withRawBytes { body throws(ZeroMQError) in
                try sendMessage(body, isCommand: true, to: id)
            }
        case .message, .malformed, .subscription: try take(event, from: id)
        }
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

    /// Sends bytes of the handshake. If they can't be sent, nothing has to be done about it.
    private func say(_ bytes: [UInt8], to id: RoutingID) throws(ZeroMQError) {
        var frame = OutgoingFrame(handshake: bytes, in: budget)
        _ = try send(&frame, table.queue(of: id), to: id)
    }
}

/// How full the resources are that all peers of a serving socket share, and how full they may be.
public struct ServingLevels: Sendable {
    /// Established connections.
    public let connections: (level: Int, most: Int)
    /// Connections that are not established yet.
    public let handshakes: (level: Int, most: Int)
    /// Bytes that are queued.
    public let queueBytes: (level: Int, most: Int)
}
